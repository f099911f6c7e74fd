"""The tree that the demo mirrors: a copy of real files of this machine, and a few odd ones.

Takes whole folders of /usr, so that names, sizes, symlinks and depths are what they are.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.demo.processes import DemoError, Processes

_TOP = Path(__file__).resolve().parents[2]
_SOURCES = [
    *map(Path, ("/usr/share", "/usr/include", "/usr/lib", "/usr/local", "/opt")),
    _TOP / ".venv",
]
_LEAST = 20_000
"""The number of entries.  The files of a small machine are copied more than once."""
_MOST_BYTES = 300_000_000
_ENOUGH = 0.8
"""The share of the entries that suffices: the rest is not worth walking more folders."""
_COPIES = 3
"""The number of copies: the mirror, huai's copy and rsync's."""
_LINKS = 50
_ODD = [
    b"new\nline",
    b"tab\tand \\ backslash",
    b"'single' and \"double\"",
    b"-leading-dash",
    b"#hash",
    b";semicolon",
    b"trailing blank ",
    b"not UTF-8 \xff\xfe",
    "Umlaute äöü".encode(),
    b"*?[a-z]",
    b"x" * 255,
]
_TEMPORARY = re.compile(rb"\..+\.[A-Za-z0-9]{6}\Z", re.DOTALL)
"""A pattern of names of rsync's unfinished files, which huai ignores."""


class Size(NamedTuple):
    """The size of a tree."""

    entries: int
    bytes: int

    def __str__(self) -> str:
        """Describe the size for people."""
        return f"{self.entries:,} entries, {self.bytes / (1 << 20):,.0f} MiB"


def working_folder() -> Path:
    """Return a folder on a disk with space, because trees in memory would prove little."""
    for base in base_folders():
        if _on_disk(base) and shutil.disk_usage(base).free > 2 * _COPIES * _MOST_BYTES:
            return base
    raise DemoError("no room on a disk: 2 GB free in a folder named by TMPDIR would do")


def base_folders() -> list[Path]:
    """Return the folders in which demos may be created."""
    folder = os.environ.get("TMPDIR")
    first = [Path(folder)] if folder else []
    return [*first, Path("/var/tmp"), Path("/tmp"), _TOP / "build"]  # noqa: S108 - private folders


def make_tree(tree: Path, processes: Processes, most: int) -> Size:
    """Fill `tree` with up to `most` entries; return its size."""
    tree.mkdir(mode=0o755)
    units, size = _choose(most)
    for copy in range(max(1, -(-min(_LEAST, most) // max(1, size.entries)))):
        target = tree / f"copy-{copy}" if copy else tree
        for source, names in units.items():
            place = Path(target, *source.parts[1:])
            place.mkdir(parents=True)
            processes.run("cp", "-a", "-t", place, "--", *(source / name for name in names))
        # A downstream applies set-id bits only if its administrator allows it.
        processes.run("chmod", "-R", "ug-s", "--", target)
    _add_odd_names(tree)
    _add_hardlinks(tree)
    _drop_temporary(os.fsencode(tree))
    return measure(tree)


def walk(tree: bytes) -> Iterator[tuple[bytes, list[bytes], list[bytes]]]:
    """Walk as `os.walk`, sorted, with symlinks among the files."""
    for folder, folders, files in os.walk(tree):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = sorted(set(folders) - set(links))
        yield folder, folders, sorted([*files, *links])


def measure(tree: Path) -> Size:
    """Count `tree` and the entries below, and the bytes of regular files."""
    entries, size = 1, 0
    for folder, folders, files in walk(os.fsencode(tree)):
        entries += len(folders) + len(files)
        paths = _join(folder, files)
        size += sum(os.lstat(path).st_size for path in paths if not os.path.islink(path))
    return Size(entries, size)


def _on_disk(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    kind = subprocess.run(
        ["stat", "--file-system", "--format=%T", "--", folder],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    return kind.stdout.strip() not in {"", "tmpfs", "ramfs"}


def _choose(most: int) -> tuple[dict[Path, list[str]], Size]:
    """Names of folders in each source, that fit together, in the order of the sources.

    Small files first: what a mirror costs beyond its content is the number of its entries.
    """
    units: dict[Path, list[str]] = {}
    entries = size = 0
    for source in _SOURCES:
        if entries > most * _ENOUGH:
            break
        for unit, more in _measured(source):
            if entries + more.entries <= most and size + more.bytes <= _MOST_BYTES:
                units.setdefault(source, []).append(unit.name)
                entries, size = entries + more.entries, size + more.bytes
    return units, Size(entries, size)


def _measured(source: Path) -> list[tuple[Path, Size]]:
    """Return the folders in `source` that can be copied completely, smallest files first."""
    units = [
        (unit, measure(unit))
        for unit in (sorted(source.iterdir()) if source.is_dir() else [])
        if unit.is_dir() and not unit.is_symlink() and _readable(os.fsencode(unit))
    ]
    return sorted(units, key=lambda pair: pair[1].bytes / pair[1].entries)


def _readable(unit: bytes) -> bool:
    """Return True if all of it can be copied; always for root."""
    return os.geteuid() == 0 or all(
        all(os.access(path, os.R_OK | os.X_OK) for path in _join(folder, folders))
        and all(os.path.islink(path) or os.access(path, os.R_OK) for path in _join(folder, files))
        for folder, folders, files in walk(unit)
    )


def _join(folder: bytes, names: list[bytes]) -> list[bytes]:
    return [os.path.join(folder, name) for name in names]


def _add_odd_names(tree: Path) -> None:
    folder = tree / "odd names"
    folder.mkdir()
    for name in _ODD:
        Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).write_bytes(name * 3)
    (folder / "dangling").symlink_to("nowhere\nto go")
    (folder / "empty").mkdir(mode=0o2775)


def _add_hardlinks(tree: Path) -> None:
    """Create hardlinks, in another folder, to files across the tree."""
    target = os.path.join(os.fsencode(tree), b"hardlinks")
    os.mkdir(target)
    files = [
        path
        for folder, _, names in walk(os.fsencode(tree))
        for path in _join(folder, names)
        if not os.path.islink(path)
    ]
    for number, path in enumerate(files[:: max(1, len(files) // _LINKS)]):
        os.link(path, os.path.join(target, b"%d" % number))


def _drop_temporary(tree: bytes) -> None:
    for folder, _, files in walk(tree):
        for name in files:
            if _TEMPORARY.match(name):
                os.unlink(os.path.join(folder, name))
