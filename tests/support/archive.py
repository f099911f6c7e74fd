"""A signed archive, made by Debian's tools: gpg, dpkg-deb and apt-ftparchive."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.upstream import SECONDS

DISTS = "dists/stable"
BINARY = f"{DISTS}/main/binary-amd64"
UNPROVED = 58
"""The exit code of a sync whose proof is refused."""


class Signer:
    """Keys of OpenPGP in a folder of their own."""

    def __init__(self, home: Path) -> None:
        """Makes the folder."""
        self.home = home
        home.mkdir(mode=0o700)

    def gpg(self, *arguments: str | Path) -> None:
        """Run it."""
        command = ["gpg", "--batch", "--yes", "--quiet", "--pinentry-mode", "loopback"]
        environment = {"PATH": os.environ["PATH"], "GNUPGHOME": str(self.home), "LC_ALL": "C"}
        done = subprocess.run(
            [*command, "--passphrase", "", *arguments],
            check=False,
            capture_output=True,
            env=environment,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr

    def key(self, name: str, keyring: Path) -> Path:
        """Make a key, and write its public part into `keyring`, which is returned."""
        owner, early = f"{name} <{name}@archive>", ("--faked-system-time", "20200101T000000!")
        self.gpg(*early, "--quick-generate-key", owner, "ed25519", "sign", "0")
        self.gpg("--output", keyring, "--export", f"{name}@archive")
        return keyring

    def inline(self, file: Path, signed: Path, *names: str, options: tuple[str, ...] = ()) -> None:
        """Sign `file` into `signed`, with all of these keys."""
        keys = [word for name in names for word in ("--local-user", f"{name}@archive")]
        self.gpg(*options, *keys, "--clearsign", "--output", signed, file)

    def detached(self, file: Path, signature: Path, name: str, *options: str) -> None:
        """Write the signature of `file` to another file."""
        key = ("--local-user", f"{name}@archive")
        self.gpg(*options, *key, "--detach-sign", "--output", signature, file)


@contextmanager
def signing(home: Path) -> Iterator[Signer]:
    """A `Signer`, whose agent ends with it."""
    signer = Signer(home)
    try:
        yield signer
    finally:
        environment = {"PATH": os.environ["PATH"], "GNUPGHOME": str(home)}
        command = ["gpgconf", "--kill", "gpg-agent"]
        subprocess.run(command, env=environment, timeout=SECONDS, check=True)


class Archive:
    """An archive of apt with one suite, below a folder."""

    def __init__(self, top: Path, signer: Signer) -> None:
        self.top = top
        self.signer = signer

    def package(self, name: str, version: str) -> None:
        """Build a package into the pool."""
        fields = f"Package: {name}\nVersion: {version}\nArchitecture: amd64\n"
        person = "Maintainer: Tester <tester@archive>\nDescription: for a test\n"
        pool = self.top / "pool" / "main"
        pool.mkdir(parents=True, exist_ok=True)
        deb = pool / f"{name}_{version}_amd64.deb"
        with TemporaryDirectory() as source:
            control = Path(source) / "DEBIAN" / "control"
            control.parent.mkdir(mode=0o755)
            control.write_text(fields + person)
            _run("dpkg-deb", "--root-owner-group", "--build", source, str(deb))

    def index(self) -> None:
        """Write Packages and Release."""
        (self.top / BINARY).mkdir(parents=True, exist_ok=True)
        packages = _run("apt-ftparchive", "packages", "pool", folder=self.top)
        (self.top / BINARY / "Packages").write_bytes(packages)
        for name in ("InRelease", "Release", "Release.gpg"):
            (self.top / DISTS / name).unlink(missing_ok=True)
        suite = ("-o", "APT::FTPArchive::Release::Suite=stable")
        release = _run("apt-ftparchive", *suite, "release", DISTS, folder=self.top)
        (self.top / DISTS / "Release").write_bytes(release)

    def sign(self, *names: str, options: tuple[str, ...] = ()) -> None:
        """Sign Release in both ways."""
        dists = self.top / DISTS
        self.signer.inline(dists / "Release", dists / "InRelease", *names, options=options)
        self.signer.detached(dists / "Release", dists / "Release.gpg", names[0])

    def update(self, version: str, *names: str) -> None:
        """A new version of a package, indexed and signed by these keys."""
        self.package("hello", version)
        self.index()
        self.sign(*names)


def _run(*command: str, folder: Path | None = None) -> bytes:
    done = subprocess.run(
        command,
        check=False,
        cwd=folder,
        capture_output=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
