"""Keys of tests, and what real ssh-keygen and git say of signatures."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huai_native._native import PrivateKey
from tests.support.committing import ENVIRONMENT, SECONDS
from tests.support.processes import until


def key(number: int) -> PrivateKey:
    """One of many keys, always the same."""
    return PrivateKey.generate(bytes([number]) * 32, "tests")


def write_key(path: Path, private: PrivateKey) -> Path:
    """Write a key as ssh-keygen does, with the public one next to it."""
    path.write_text(private.encode())
    path.chmod(0o600)
    path.with_name(f"{path.name}.pub").write_text(f"{private.public} tests\n")
    return path


def allow(path: Path, *public: str) -> Path:
    """A file of allowed signers."""
    path.write_text(
        "".join(
            f'huai@localhost namespaces="git,huai-cosigned,huai-keys" {key}\n' for key in public
        )
    )
    return path


def git_accepts(repository: Path, allowed: Path, commit: str = "main") -> bool:
    """Return true if git finds the signature of a commit good."""
    settings = ("-c", f"safe.directory={repository}", "-c", f"gpg.ssh.allowedSignersFile={allowed}")
    done = _run(["git", *settings, "-C", str(repository), "verify-commit", commit])
    assert done.returncode == 0 or b"GOODSIG" not in done.stderr
    return done.returncode == 0


def ssh_keygen_accepts(allowed: Path, namespace: str, message: bytes, signature: bytes) -> bool:
    """Return true if ssh-keygen finds a signature good."""
    place = allowed.with_name("signature")
    place.write_bytes(signature)
    words = ("-Y", "verify", "-f", str(allowed), "-I", "huai@localhost", "-n", namespace)
    return _run(["ssh-keygen", *words, "-s", str(place)], message).returncode == 0


@contextmanager
def agent(folder: Path, *keys: Path) -> Iterator[Path]:
    """A real agent that holds keys; its socket."""
    place = folder / "agent"
    process = subprocess.Popen(
        ["ssh-agent", "-D", "-a", str(place)], stdout=subprocess.DEVNULL, env=ENVIRONMENT
    )

    def listens() -> bool:
        """The socket is there a moment before."""
        assert process.poll() is None
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(place)) == 0

    try:
        until(listens)
        for key_file in keys:
            added = _run(["ssh-add", "-q", str(key_file)], agent=place)
            assert added.returncode == 0, added.stderr
        yield place
    finally:
        process.terminate()
        process.wait(SECONDS)


def _run(
    command: list[str], data: bytes = b"", agent: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    where = {"SSH_AUTH_SOCK": str(agent)} if agent else {}
    return subprocess.run(
        command,
        input=data,
        capture_output=True,
        timeout=SECONDS,
        check=False,
        env={**ENVIRONMENT, **where},
    )
