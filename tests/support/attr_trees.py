"""An upstream with an attr tree of each of its commits, and the proof that it is the right one."""

import os
import stat
from pathlib import Path

from huai_server.fallback.attr.check import AttrReport, check_attr_tree
from huai_server.fallback.attr.ensure import AttrTreeResult, ensure
from huai_server.fallback.attr.tree import AttrTree
from huai_server.state.paths import FallbackPlaces
from tests.support.committing import NAME, Upstream

Seen = dict[bytes, tuple[object, ...]]


class Fallback(Upstream):
    """A module with what the fallback has of it."""

    def __init__(self, folder: Path) -> None:
        """Below `folder`."""
        super().__init__(folder)
        self.configure(digest="off")
        self.attr = FallbackPlaces(folder / "fallback" / NAME)

    @property
    def attr_tree(self) -> AttrTree:
        """The attr tree for the use cases."""
        return AttrTree(NAME, self.module, self.places, self.attr)

    def ensure(self, *, rebuild: bool = False, look: bool = False) -> AttrTreeResult:
        """Bring the attr tree up to the newest commit."""
        return ensure(self.attr_tree, rebuild=rebuild, look=look, wait=0)

    def prove(self) -> AttrReport:
        """Run the check of `fallback check`."""
        return check_attr_tree(self.attr_tree, wait=0)

    def assert_equal(self, context: object = None) -> None:
        """By huai's own check, and by looking at both trees."""
        assert self.prove().shown == (), context
        assert list_entries(self.attr.tree) == list_entries(self.tree), context


def list_entries(top: Path) -> Seen:
    """The facts of a listing of all entries below `top`, except content."""
    root = os.fsencode(top) + b"/"
    entries: Seen = {}
    names: dict[tuple[int, int], bytes] = {}
    for folder, folders, files in os.walk(root):
        for name in sorted([*folders, *files, b"."]):
            path = os.path.join(folder, name)
            if name == b"." and folder != root:
                continue
            status = os.lstat(path)
            inside = path.removeprefix(root)
            is_link = stat.S_ISLNK(status.st_mode)
            first = inside
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                first = names.setdefault((status.st_dev, status.st_ino), inside)
            entries[inside] = (
                status.st_mode,
                None if stat.S_ISDIR(status.st_mode) else status.st_size,
                status.st_mtime_ns,
                status.st_uid,
                status.st_gid,
                os.readlink(path) if is_link else None,
                first,
            )
    return entries
