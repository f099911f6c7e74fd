"""The interface of a kind of attr tree, which makes, changes and deletes attr trees.

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
"""The attributes that rsync does not list."""


class AttrTreeError(HuaiError):
    """An attr tree cannot be made, changed or used."""

    exit_code = ExitCode.FALLBACK


class Update(NamedTuple):
    """A planned change of an attr tree in place."""

    changes: int
    """The number of entries that differ; a moved directory counts once with all below it."""
    run: Callable[[], int]
    """Changes the attr tree; after an `OSError` each entry is the old one or the new one.

    Returns the number of entries whose owner could not be set.
    """


class AttrTreeKind(ABC):
    """A way to store names, sizes and times without content.

    The caller holds the module's lock.  `owners` None means a module that records no owners, whose
    entries belong to the user of this process.
    """

    ENTRY_BYTES: ClassVar[int]
    """The approximate memory or disk space of an entry, in bytes."""
    writable: ClassVar[bool]
    """True if other programs can change an attr tree, so that it must be checked."""

    def __init__(self, folder: Path) -> None:
        """Store attr trees in the file system of `folder`."""
        self._folder = folder

    @abstractmethod
    def check_room(self, totals: Totals) -> None:
        """Raise `AttrTreeError` unless there is room for an attr tree of this size."""

    @abstractmethod
    def make(self, generation: Path, snapshot: Snapshot, owners: OwnerIds | None) -> int:
        """Build a complete attr tree at `generation`, which must not exist.

        Returns the number of entries whose owner could not be set.  After a failure the caller
        discards it.
        """

    @abstractmethod
    def plan(
        self, generation: Path, old: Snapshot, new: Snapshot, owners: OwnerIds | None
    ) -> Update | None:
        """Plan the update of `generation`; None if a new attr tree must be made instead."""

    @abstractmethod
    def discard(self, generation: Path) -> None:
        """Delete a complete or partial attr tree, which no daemon serves any more."""
