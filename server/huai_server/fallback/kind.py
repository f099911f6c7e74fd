"""The interface of a kind of attr tree: how to make, change and delete one.

`attr` decides when; `sparse` and `erofs` are the kinds.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, NamedTuple

from huai_schema.codec.commits import Totals
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_server.fallback.owners import OwnerIds

UNLISTED = frozenset(("digest",))
"""Attributes that rsync does not list."""


class AttrTreeError(HuaiError):
    """An attr tree cannot be made, changed or used."""

    exit_code = ExitCode.FALLBACK


class Update(NamedTuple):
    """A planned change of an attr tree in place."""

    changes: int
    """How many entries differ; a directory that moved with all below it counts once."""
    run: Callable[[], int]
    """Carries it out; after an `OSError` each entry is the old one or the new one.

    Returns how many entries could not be given their owner.
    """


class AttrTreeKind(ABC):
    """One way to keep names, sizes and times without content.

    The caller holds the module's lock.  `owners` is None for a module that records no owners: all
    entries then belong to the user that runs this.
    """

    ENTRY_BYTES: ClassVar[int]
    """About how much memory, or disk, an entry takes."""
    writable: ClassVar[bool]
    """Whether other programs can change an attr tree, so that it has to be looked at."""

    def __init__(self, folder: Path) -> None:
        """`folder` is where the space is taken."""
        self._folder = folder

    @abstractmethod
    def check_room(self, totals: Totals) -> None:
        """Raise `AttrTreeError` unless one of this size can be made here and now."""

    @abstractmethod
    def make(self, generation: Path, snapshot: Snapshot, owners: OwnerIds | None) -> int:
        """Make a whole attr tree at `generation`, which does not exist.

        Returns how many entries could not be given their owner.  After a failure the caller
        discards it.
        """

    @abstractmethod
    def plan(
        self, generation: Path, old: Snapshot, new: Snapshot, owners: OwnerIds | None
    ) -> Update | None:
        """The update of `generation` from `old` to `new`; None: a new one has to be made."""

    @abstractmethod
    def discard(self, generation: Path) -> None:
        """Delete the attr tree at `generation`, whole or not; no daemon serves it any more."""
