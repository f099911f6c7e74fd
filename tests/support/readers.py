"""Readers of a mirror, as apt and dnf read it, and an archive for them that changes.

A reader takes the pointer first, then the index that it names, then every file that the index
names, and pauses after each.  What a just-read index names has to be there: a `HoleError` if not.
Where a digest does not match, it begins again with the pointer, as the real ones
do; `again` counts that.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.upstream import Upstream

DISTS = "debian/dists/sid"
INDEX = "main/binary-amd64/Packages"


class HoleError(AssertionError):
    """A file that an index names is not there."""


class OtherError(Exception):
    """A file is not what its index says."""


@dataclass
class Reader:
    """One pass of a reader over a mirror."""

    root: Path
    files: Callable[[Path], Iterator[None]]
    """Reads everything once, with a pause after each file."""
    again: int = 0
    done: bool = False
    steps: Iterator[None] = field(init=False)

    def __post_init__(self) -> None:
        self.steps = self._read()

    def step(self) -> None:
        """Read one file more."""
        self.done = self.done or next(self.steps, self) is self

    def finish(self) -> None:
        """Read to the end; nothing changes any more, so it may begin again once."""
        before = self.again
        while not self.done:
            self.step()
            assert self.again <= before + 1, "the mirror is not consistent"

    def _read(self) -> Iterator[None]:
        while True:
            try:
                yield from self.files(self.root)
            except OtherError:
                self.again += 1
                yield
            else:
                return


def read(path: Path, size: int = -1, digest: str = "") -> bytes:
    """The content of a file, which has to be there."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise HoleError(str(path)) from None
    if size not in (-1, len(data)) or (digest and hashlib.sha256(data).hexdigest() != digest):
        raise OtherError(str(path))
    return data


def apt(root: Path) -> Iterator[None]:
    """InRelease, then Packages by its hash, then the packages."""
    release = read(root / DISTS / "InRelease").decode()
    yield
    match = re.search(rf"^ (\w{{64}}) (\d+) {INDEX}$", release, re.MULTILINE)
    assert match, release
    by_hash = root / DISTS / Path(INDEX).parent / "by-hash" / "SHA256" / match[1]
    index = read(by_hash, int(match[2]), match[1]).decode()
    yield
    stanza = re.compile(r"Filename: (\S+)\nSize: (\d+)\nSHA256: (\w{64})\n")
    for name, size, digest in stanza.findall(index):
        read(root / "debian" / name, int(size), digest)
        yield


def dnf(root: Path) -> Iterator[None]:
    """repomd.xml, then primary.xml, then the packages."""
    repomd = read(root / "rpm/repodata/repomd.xml").decode()
    yield
    match = re.search(r'<checksum type="sha256">(\w{64})</checksum><location href="(\S+)"', repomd)
    assert match, repomd
    primary = read(root / "rpm" / match[2], digest=match[1]).decode()
    yield
    package = re.compile(
        r'<checksum type="sha256" pkgid="YES">(\w{64})</checksum>'
        r'<size package="(\d+)"/><location href="(\S+)"/>'
    )
    for digest, size, name in package.findall(primary):
        read(root / "rpm" / name, int(size), digest)
        yield


@dataclass
class Archive:
    """An apt archive and an rpm repository of the same packages."""

    up: Upstream
    versions: dict[str, int] = field(default_factory=dict)
    """Package to version; the file's name has it, except that of `fixed`."""
    round: int = 0

    def change(self) -> None:
        """New packages, new versions, packages that go, one replaced under its name; commit."""
        self.round += 1
        for number in range(3):
            self.versions[f"new{self.round}-{number}"] = self.round
        for name in sorted(self.versions)[:: 3 if self.round > 1 else 1]:
            self.versions[name] = self.round
        for name in [name for name in self.versions if name.startswith(f"new{self.round - 3}-")]:
            del self.versions[name]
        self.versions["fixed"] = self.round
        self._write()
        self.up.commit()

    def _write(self) -> None:
        stanzas: list[str] = []
        packages: list[str] = []
        paths: set[Path] = set()
        for name, version in sorted(self.versions.items()):
            data = (f"{name} {version} " * 50).encode()
            digest = hashlib.sha256(data).hexdigest()
            file = f"{name}-{version}" if name != "fixed" else name
            deb, rpm = f"pool/{name}/{file}.deb", f"Packages/{name[0]}/{file}.rpm"
            paths |= {self._write_file(f"debian/{deb}", data), self._write_file(f"rpm/{rpm}", data)}
            stanzas.append(
                f"Package: {name}\nFilename: {deb}\nSize: {len(data)}\nSHA256: {digest}\n\n"
            )
            packages.append(
                f'<package><checksum type="sha256" pkgid="YES">{digest}</checksum>'
                f'<size package="{len(data)}"/><location href="{rpm}"/></package>'
            )
        paths |= self._apt("".join(stanzas).encode()) | self._rpm("\n".join(packages).encode())
        for path in self.up.tree.rglob("*"):
            if path.is_file() and path not in paths:
                path.unlink()

    def _apt(self, index: bytes) -> set[Path]:
        digest = hashlib.sha256(index).hexdigest()
        release = f"Acquire-By-Hash: yes\nSHA256:\n {digest} {len(index)} {INDEX}\n".encode()
        folder = Path(INDEX).parent
        return {
            self._write_file(f"{DISTS}/{INDEX}", index),
            self._write_file(f"{DISTS}/{folder}/by-hash/SHA256/{digest}", index),
            self._write_file(f"{DISTS}/InRelease", release),
        }

    def _rpm(self, primary: bytes) -> set[Path]:
        digest = hashlib.sha256(primary).hexdigest()
        name = f"repodata/{digest}-primary.xml"
        repomd = (
            f'<repomd><data type="primary"><checksum type="sha256">{digest}</checksum>'
            f'<location href="{name}"/></data></repomd>'
        )
        return {
            self._write_file(f"rpm/{name}", primary),
            self._write_file("rpm/repodata/repomd.xml", repomd.encode()),
        }

    def _write_file(self, path: str, data: bytes) -> Path:
        place = self.up.at(path.encode())
        if not place.exists() or place.read_bytes() != data:
            self.up.put(path.encode(), data, mtime=None)
        return place
