"""Trees that look like a mirror, and what a day does to one.

The same arguments give the same tree, down to the nanosecond, on every machine.
"""

import os
import random
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REAL_FILES = 50_000
REAL_TOPS = ("/usr/share", "/usr/include", "/usr/lib", "/usr/local")
REAL_BYTES = 1 << 16
"""The most bytes of a small file."""
_FLAT_SHARE = 0.2
_FLAT_ENTRIES = 5000
_SYMLINK_SHARE = 0.03
_EPOCH = 1_600_000_000_000_000_000
_YEARS = 150_000_000_000_000_000
_TODAY = 1_760_000_000_000_000_000
_DAY = 86_400_000_000_000


class Churn(NamedTuple):
    """How many entries a churn changed, and how."""

    new: int
    changed: int
    """New content, size and time, put in place by a rename."""
    touched: int
    """A new time only."""
    deleted: int
    renamed: int
    """Entries that came along when one directory was renamed, that directory included."""

    @property
    def total(self) -> int:
        return sum(self)


def make_tree(root: Path, entries: int, seed: int = 1, size: int = 0) -> None:
    """Make `root` with exactly `entries` entries in it; files hold `size` bytes on average.

    About ten entries a directory, as in a package pool, and a fifth of them in large ones.
    """
    root.mkdir(parents=True, exist_ok=True)
    maker = _Maker(random.Random(seed), entries, size)
    maker.fill_flat(root / "flat", int(entries * _FLAT_SHARE))
    maker.fill_pool(root / "pool")


def make_directories(root: Path, directories: int, entries: int) -> None:
    """Make `root` with so many entries in it, most of them in small directories of their own.

    A few hundred directories hold the others; files hold a few bytes.
    """
    tops = [root / f"{number:03}" for number in range(min(300, directories))]
    rest = range(len(tops), directories)
    paths = tops + [tops[number % len(tops)] / f"{number:06}" for number in rest]
    for path in paths:
        path.mkdir(parents=True)
    for number in range(entries - directories):
        (paths[number % directories] / f"f{number}").write_text(str(number))


def make_small_files(root: Path, files: int, directories: int) -> None:
    """Make `root` with so many files of 10 bytes to 3 kB in so many directories, two deep."""
    rng = random.Random(1)
    tops = [root / f"{number:03}" for number in range(min(200, directories))]
    paths = tops + [tops[each % len(tops)] / f"d{each}" for each in range(len(tops), directories)]
    for path in paths:
        path.mkdir(parents=True)
    for number in range(files):
        path = paths[number % directories] / f"file-{number}"
        path.write_bytes(rng.randbytes(rng.randrange(10, 3001)))
        time = _EPOCH + rng.randrange(_YEARS)
        os.utime(path, ns=(time, time))


def make_crowd(root: Path, files: int, size: int = 1) -> None:
    """Make `root` with so many files of so many bytes in one directory."""
    crowd = root / "crowd"
    crowd.mkdir(parents=True)
    handle = os.open(crowd, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for number in range(files):
            name = f"file-{number:07}.tar.gz"
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=handle)
            if size:
                os.write(file, b"%0*d" % (size, number % 10**size))
            os.close(file)
    finally:
        os.close(handle)


def copy_real(root: Path, files: int) -> int:
    """Copy so many small files of this machine below `root`, in their directories; how many."""
    root.mkdir(parents=True)
    count = 0
    for top in REAL_TOPS:
        for folder, names, leaves in os.walk(top):
            names.sort()
            small = [name for name in sorted(leaves) if _is_small(os.path.join(folder, name))]
            dest = root / folder.lstrip("/")
            for name in small[: files - count]:
                dest.mkdir(parents=True, exist_ok=True)
                shutil.copy2(os.path.join(folder, name), dest / name)
                count += 1
            if count == files:
                return count
    return count


def _is_small(path: str) -> bool:
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return (
        stat.S_ISREG(status.st_mode) and status.st_size <= REAL_BYTES and os.access(path, os.R_OK)
    )


def churn(root: Path, fraction: float, seed: int = 1) -> Churn:
    """Change about `fraction` of the entries of a tree made by `make_tree`."""
    rng = random.Random(seed)
    packages, files = _survey(root)
    moved = rng.choice(packages)
    amount = max(4, int(len(files) * fraction))
    outside = [path for path in files if not path.startswith(moved + "/")]
    chosen = rng.sample(outside, min(len(outside), amount))
    cuts = [int(len(chosen) * share) for share in (0.4, 0.7, 0.8)]
    new, changed, touched = chosen[: cuts[0]], chosen[cuts[0] : cuts[1]], chosen[cuts[1] : cuts[2]]
    deleted = chosen[cuts[2] :]
    for number, path in enumerate(new):
        _write(f"{path}+new{number}", rng.randbytes(rng.randrange(1, 400)), _today(rng))
    for path in changed:
        _write(f"{path}.part", rng.randbytes(rng.randrange(400, 800)), _today(rng))
        os.replace(f"{path}.part", path)
    for path in touched:
        os.utime(path, ns=(_TODAY, _today(rng)))
    for path in deleted:
        os.unlink(path)
    renamed = 1 + len(os.listdir(moved))
    os.rename(moved, f"{moved}-moved")
    return Churn(len(new), len(changed), len(touched), len(deleted), renamed)


def update(root: Path, fraction: float, seed: int = 1) -> Churn:
    """Change about `fraction` of the entries as a release does: whole neighbouring packages.

    In each, two files of three get a new version under another name, one is rewritten.
    """
    rng = random.Random(seed)
    packages, files = _survey(root)
    packages.sort()
    amount = max(4, int(len(files) * fraction))
    start = rng.randrange(len(packages))
    new = changed = number = 0
    for package in packages[start:] + packages[:start]:
        for name in sorted(os.listdir(package)):
            path = f"{package}/{name}"
            if os.path.islink(path):
                continue
            number += 1
            content = rng.randbytes(rng.randrange(1, 400))
            if number % 3:
                os.unlink(path)
                _write(f"{path.removesuffix('.deb')}+u{seed}.deb", content, _today(rng))
                new += 1
            else:
                _write(path, content, _today(rng))
                changed += 1
        if 2 * new + changed >= amount:
            break
    return Churn(new, changed, touched=0, deleted=new, renamed=0)


class _Maker:
    def __init__(self, rng: random.Random, entries: int, size: int) -> None:
        self._rng = rng
        self._left = entries
        self._size = size

    def fill_flat(self, top: Path, entries: int) -> None:
        number = 0
        while entries > 1 and self._left > 2:
            if number == 0:
                self._directory(top)
            inside = min(entries, _FLAT_ENTRIES, self._left - 1)
            self._directory(top / f"by-hash-{number}")
            self._fill(top / f"by-hash-{number}", inside)
            entries -= inside
            number += 1
        self._date(top, number)

    def fill_pool(self, top: Path) -> None:
        packages: list[Path] = []
        for path in self._packages(top):
            missing = [above for above in reversed(path.parents) if top in (above, *above.parents)]
            for directory in [*(above for above in missing if not above.exists()), path]:
                if self._left:
                    self._directory(directory)
                    packages.append(directory)
            self._fill(path, min(self._left, self._rng.randrange(1, 18)))
            if not self._left:
                break
        for directory in reversed(packages):
            self._date(directory, 1)

    def _packages(self, top: Path) -> Iterator[Path]:
        number = 0
        while self._left:
            section = self._rng.choice(("main", "main", "main", "contrib", "non-free"))
            letter = self._rng.choice("abcdefghijklmnopqrstuvwxyz")
            yield top / section / letter / f"{letter}{self._rng.getrandbits(20):x}-{number}"
            number += 1

    def _directory(self, path: Path) -> None:
        path.mkdir()
        self._left -= 1

    def _fill(self, directory: Path, entries: int) -> None:
        if entries < 1:
            return
        rng = self._rng
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for number in range(entries):
                name = f"lib{rng.getrandbits(32):08x}_{number}.{number % 7}-1_amd64.deb"
                if rng.random() < _SYMLINK_SHARE:
                    os.symlink(f"../target-{number}", name, dir_fd=handle)
                    time = self._time()
                    os.utime(name, ns=(time, time), dir_fd=handle, follow_symlinks=False)
                else:
                    self._file(handle, name)
        finally:
            os.close(handle)
        self._left -= entries
        self._date(directory, 1)

    def _file(self, directory: int, name: str) -> None:
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=directory)
        try:
            if self._size:  # as good as never the content of another file
                os.write(handle, self._rng.randbytes(self._rng.randrange(1, 2 * self._size)))
            time = self._time()
            os.utime(handle, ns=(time, time))
        finally:
            os.close(handle)

    def _date(self, directory: Path, entries: int) -> None:
        if entries and directory.exists():
            time = self._time()
            os.utime(directory, ns=(time, time))

    def _time(self) -> int:
        return _EPOCH + int(self._rng.random() * _YEARS)


def regular_files(root: Path) -> list[str]:
    """Return all regular files, those of a directory next to each other."""
    return _survey(root)[1]


def rewrite_share(root: Path, share: float, seed: int) -> None:
    """Put new files of up to 400 bytes in the place of a share of all files."""
    rng = random.Random(seed)
    files = regular_files(root)
    for path in rng.sample(files, round(len(files) * share)):
        rewrite(path, rng)


def rewrite(path: str, rng: random.Random) -> None:
    """Put a new file in the place of one."""
    _write(f"{path}.part", rng.randbytes(rng.randrange(1, 400)), _today(rng))
    os.replace(f"{path}.part", path)


def _survey(root: Path) -> tuple[list[str], list[str]]:
    """The directories without subdirectories that hold few files, and all regular files."""
    packages: list[str] = []
    files: list[str] = []
    for directory, below, names in os.walk(root):
        below.sort()
        if not below and 1 < len(names) < 100:
            packages.append(directory)
        with os.scandir(directory) as entries:
            files += sorted(each.path for each in entries if each.is_file(follow_symlinks=False))
    return packages, files


def _today(rng: random.Random) -> int:
    return _TODAY + rng.randrange(_DAY)


def _write(path: str, content: bytes, time: int) -> None:
    with open(path, "wb") as file:
        file.write(content)
    os.utime(path, ns=(time, time))
