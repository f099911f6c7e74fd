"""The interface of a kind of attr tree: how to make, change and delete one.

`attr` decides when; `attr.sparse` and `erofs` are the kinds.  Values and interfaces only.
"""

from pathlib import Path
from typing import Protocol

from huai_schema.codec.commits import Totals
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_server.fallback.owners import OwnerIds


class AttrTreeError(HuaiError):
    """An attr tree cannot be made, changed or used."""

    exit_code = ExitCode.FALLBACK


class Update(Protocol):
    """A planned change of an attr tree in place."""

    @property
    def changes(self) -> int:
        """How many entries differ; a directory that moved with all below it counts once."""
        ...

    def run(self) -> int:
        """Carry it out; after an `OSError` each entry is the old one or the new one.

        Returns how many entries could not be given their owner.
        """
        ...


class AttrTreeKind(Protocol):
    """One way to keep names, sizes and times without content.

    The caller holds the module's lock.  `owners` is None for a module that records no owners: all
    entries then belong to the user that runs this.
    """

    @property
    def writable(self) -> bool:
        """Whether other programs can change an attr tree, so that it has to be looked at."""
        ...

    def memory(self, totals: Totals) -> int:
        """About how many bytes of memory, or of disk, an attr tree of so many entries takes."""
        ...

    def check_room(self, folder: Path, totals: Totals) -> None:
        """Raise `AttrTreeError` if there is no room for one of this size below `folder`."""
        ...

    def make(self, generation: Path, snapshot: Snapshot, owners: OwnerIds | None) -> int:
        """Make a whole attr tree at `generation`, which does not exist.

        Returns how many entries could not be given their owner.  After a failure the caller
        discards it.
        """
        ...

    def plan(
        self, generation: Path, old: Snapshot, new: Snapshot, owners: OwnerIds | None
    ) -> Update | None:
        """The update of `generation` from `old` to `new`; None: a new one has to be made."""
        ...

    def discard(self, generation: Path) -> None:
        """Delete the attr tree at `generation`, whole or not; no daemon serves it any more."""
        ...
