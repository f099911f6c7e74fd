"""Remarks of a commit: what is no problem, but worth a line.  Paths are counted, the first named.

Values only; `cli.report` puts them into words.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from huai_schema.paths import RelPath

SHOWN = 10
"""Paths that a remark names."""

TEMPORARY = "temporary"
"""Left out: files that rsync has not finished."""
RESERVED = "reserved"
"""Left out: `.~tmp~`."""
UNREADABLE = "unreadable"
"""Committed, but others may not read it."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One kind of thing that was seen."""

    kind: str
    count: int
    paths: tuple[RelPath, ...]
    """The first of them, in tree order."""


class Remarks:
    """Collects remarks; memory does not grow with what is seen."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
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

    def found(self) -> tuple[Remark, ...]:
        """All of them."""
        return tuple(
            Remark(kind, count, tuple(self._paths[kind])) for kind, count in self._counts.items()
        )
