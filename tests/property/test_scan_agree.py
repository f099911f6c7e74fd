"""The native scanner, compared with its oracle, and both with the tree."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from huai_schema.entries import Symlink
from huai_server.scan.types import ScanOptions
from tests.support import scan_oracle
from tests.support.scanned import scan
from tests.support.unprivileged import as_nobody


class Leaf(NamedTuple):
    kind: str
    mode: int
    mtime: int
    content: bytes


class Folder(NamedTuple):
    mode: int
    mtime: int
    inside: dict[bytes, "Node"]


Node: TypeAlias = Leaf | Folder

ODD_NAMES = [
    b"a", b"b", b"ab", b"a-b", b"a.b", b"abcdefgh", b"abcdefghi", b"abcdefgh\x01", b"\n", b"a\tb",
    b"\\", b"\\x0a", b"\x7f", b"\xff\xfe", "é".encode(), b"-rf", b"#", b" ", b"x ", b"...",
    b"x" * 255, b".~tmp~", b".~TMP~", b".f.Ab3xY9", b".config.backup", b"x.tmp", b"*", b"[a]",
]  # fmt: skip
PATTERNS = [
    b"*", b"?", b"[a-m]*", b"a*/", b"/a", b"/a/b", b"a/b/", b"*.tmp", b"\\*", b"[[:upper:]]*",
    b"\xff*", b"/*/a", b"/*", b"*/", b"[a]", b"[!a]", b"x*x", b"[", b"\\",
]  # fmt: skip

names = st.sampled_from(ODD_NAMES) | st.binary(min_size=1, max_size=12).map(
    lambda raw: raw.replace(b"/", b"|").replace(b"\0", b"0").replace(b".", b"_")
)
times = st.integers(-(1 << 33), 1 << 33).map(lambda part: part * 1_000_000_007 % (1 << 61) - 10**18)
leaf_nodes = st.builds(
    Leaf,
    st.sampled_from(["file", "file", "file", "symlink", "fifo", "socket", "hardlink"]),
    st.sampled_from([0o644, 0o600, 0o4755, 0, 0o1, 0o7777]),
    times,
    st.binary(min_size=1, max_size=40).map(lambda raw: raw.replace(b"\0", b"\n")),
)


def folders(inside: st.SearchStrategy[Node]) -> st.SearchStrategy[Folder]:
    modes = st.sampled_from([0o755, 0o755, 0o2775, 0o1777, 0o700, 0o444, 0o311, 0])
    return st.builds(Folder, modes, times, st.dictionaries(names, inside, max_size=6))


trees = st.builds(
    Folder,
    st.sampled_from([0o755, 0o2775]),
    times,
    st.dictionaries(names, st.recursive(leaf_nodes, folders, max_leaves=25), max_size=8),
)
options = st.builds(
    ScanOptions,
    owners=st.booleans(),
    exclude=st.lists(st.sampled_from(PATTERNS), max_size=2).map(tuple),
)


@contextmanager
def planted(tree: Folder) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="h") as folder:
        root = Path(folder) / "root"
        Path(folder).chmod(0o755)
        root.mkdir()
        handle = os.open(root, os.O_RDONLY)
        fill(handle, tree, [])
        finish(handle, tree)
        os.close(handle)
        root.chmod(tree.mode)
        os.utime(root, ns=(0, tree.mtime))
        yield root
        unlock(root)


def fill(handle: int, folder: Folder, files: list[bytes]) -> None:
    for name, node in folder.inside.items():
        if isinstance(node, Folder):
            os.mkdir(name, dir_fd=handle)
            below = os.open(name, os.O_RDONLY, dir_fd=handle)
            fill(below, node, files)
            os.close(below)
        else:
            plant(handle, name, node, files)


def plant(parent: int, name: bytes, leaf: Leaf, files: list[bytes]) -> None:
    path = os.readlink(b"/proc/self/fd/%d" % parent) + b"/" + name
    match leaf.kind:
        case "symlink":
            os.symlink(leaf.content, name, dir_fd=parent)
        case "fifo":
            os.mknod(name, stat.S_IFIFO | 0o600, dir_fd=parent)
        case "socket":
            os.mknod(name, stat.S_IFSOCK | 0o600, dir_fd=parent)
        case "hardlink" if files:
            os.link(files[len(leaf.content) % len(files)], name, dst_dir_fd=parent)
        case _:
            handle = os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=parent)
            os.write(handle, leaf.content)
            os.fchmod(handle, leaf.mode)
            os.close(handle)
            files.append(path)
    if leaf.kind != "hardlink":
        os.utime(name, ns=(0, leaf.mtime), dir_fd=parent, follow_symlinks=False)


def finish(handle: int, folder: Folder) -> None:
    """Set modes and times at the end, because a mode may shut out an ordinary user."""
    for name, node in folder.inside.items():
        if isinstance(node, Folder):
            below = os.open(name, os.O_RDONLY, dir_fd=handle)
            finish(below, node)
            os.close(below)
            os.chmod(name, node.mode, dir_fd=handle)
            os.utime(name, ns=(0, node.mtime), dir_fd=handle)


def unlock(root: Path) -> None:
    root.chmod(0o755)
    for directory, below, _ in os.walk(root):
        for name in below:
            path = Path(directory, name)
            if not path.is_symlink():
                path.chmod(0o755)


@given(trees, options, st.booleans())
def test_both_scanners_see_the_same(tree: Folder, how: ScanOptions, privileged: bool) -> None:
    with planted(tree) as root:
        if privileged:
            assert scan(root, how) == scan_oracle.scan(root, how)
        else:
            native, python = as_nobody(lambda: (scan(root, how), scan_oracle.scan(root, how)))
            assert native == python


@given(trees)
def test_every_entry_is_listed_or_accounted_for(tree: Folder) -> None:
    with planted(tree) as root:
        scanned = scan(root)
        top = os.fsencode(root)
        expected = dict(walk(top))
        special = [s for s in expected.values() if stat.S_ISFIFO(s) or stat.S_ISSOCK(s)]
        if not scanned.problems or os.geteuid() == 0:
            assert scanned.skipped == len(special)
        if not scanned.problems:
            ordinary = {path for path, mode in expected.items() if not special_mode(mode)}
            assert {*scanned.entries} - {b""} == ordinary
        for path, leaf in scanned.leaves.items():
            status = os.lstat(top + b"/" + path)
            assert leaf.mtime == status.st_mtime_ns
            assert leaf.mode == stat.S_IMODE(status.st_mode)
            if isinstance(leaf, Symlink):
                assert leaf.target == os.readlink(top + b"/" + path)
            else:
                assert leaf.size == status.st_size


def special_mode(mode: int) -> bool:
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def walk(root: bytes, prefix: bytes = b"") -> Iterator[tuple[bytes, int]]:
    """Yield every path below `root` with its mode, except rsync's leftovers in `ODD_NAMES`."""
    names = os.listdir(root) if os.access(root, os.R_OK | os.X_OK) else ()
    for name in names:
        mode = os.lstat(root + b"/" + name).st_mode
        unfinished = name in (b".f.Ab3xY9", b".config.backup") and not mode & 0o77
        if name.lower() == b".~tmp~" or (stat.S_ISREG(mode) and unfinished):
            continue
        yield prefix + name, mode
        if stat.S_ISDIR(mode):
            yield from walk(root + b"/" + name, prefix + name + b"/")
