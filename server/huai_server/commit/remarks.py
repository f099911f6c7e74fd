"""Remarks of a commit: what is no problem, but worth a line.  Paths are counted, the first named.

Values only; `cli.report` puts them into words.
"""

import re
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from huai_schema.codec.escaping import unescape
from huai_schema.paths import RelPath, join
from huai_server.scan import types as scan_types
from huai_server.scan.types import IDENTITY, ScannedDirectory

SHOWN = 10
"""Paths that a remark names."""

TEMPORARY = "temporary"
"""Left out: files that rsync has not finished."""
RESERVED = "reserved"
"""Left out: `.~tmp~`."""
UNREADABLE = "unreadable"
"""Committed, but others may not read it."""

_KINDS = {scan_types.TEMPORARY: TEMPORARY, scan_types.RESERVED: RESERVED}
_MODE = re.compile(rb"\tm([0-7]+)")
_OTHERS_ENTER = stat.S_IROTH | stat.S_IXOTH


class Remark(NamedTuple):
    """One kind of thing that was seen."""

    kind: str
    number: int
    paths: tuple[RelPath, ...]
    """The first of them, in tree order."""


class Remarks:
    """Collects remarks; memory does not grow with what is seen."""

    def __init__(self, *, check_readable: bool = True) -> None:
        """Nothing was seen yet.  `check_readable`: remark what others may not read."""
        self._check_readable = check_readable
        self._counts: dict[str, int] = {}
        self._paths: dict[str, list[RelPath]] = {}

    def add(self, kind: str, paths: Iterable[RelPath], count: int) -> None:
        """Remember `count` more of a kind; of `paths` only as many are taken as will be shown."""
        self._counts[kind] = self._counts.get(kind, 0) + count
        known = self._paths.setdefault(kind, [])
        for path in paths:
            if len(known) >= SHOWN:
                break
            known.append(path)

    def take(self, item: ScannedDirectory) -> None:
        """Remember what there is to say of a directory."""
        for path, reason, _ in item.left_out:
            self.add(_KINDS[reason], (path,), 1)
        if not self._check_readable:
            return
        if _is_closed(item.listing.attributes):
            self.add(UNREADABLE, (item.listing.path,), 1)
        if item.unreadable:
            self.add(UNREADABLE, _unreadable_files(item), item.unreadable)

    def found(self) -> tuple[Remark, ...]:
        """All of them."""
        return tuple(
            Remark(kind, count, tuple(self._paths[kind])) for kind, count in self._counts.items()
        )


def _is_closed(attributes: bytes) -> bool:
    """Whether others may not enter a directory, or not read it."""
    mode = _MODE.search(attributes)
    return mode is not None and int(mode[1], 8) & _OTHERS_ENTER != _OTHERS_ENTER


def _unreadable_files(item: ScannedDirectory) -> Iterator[RelPath]:
    """The files that others may not read."""
    leaves = item.listing.leaves
    for record in IDENTITY.iter_unpack(item.identities):
        *_, offset, mode, _, _ = record
        if not mode & stat.S_IROTH:
            yield join(item.listing.path, unescape(leaves[offset : leaves.index(b"\t", offset)]))
