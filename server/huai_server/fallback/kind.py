"""What a kind of attr tree has to know: how to make one, change one and take one away.

`attr` decides when; `attr.sparse` and `erofs` are the kinds.  Values and interfaces only.
"""

from pathlib import Path
from typing import Protocol

from huai_schema.codec.commits import Totals
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_server.fallback.owners import OwnerIds


class AttrTreeError(HuaiError):
    """An attr tree that cannot be made, changed or trusted."""

    exit_code = ExitCode.FALLBACK


class Update(Protocol):
    """A change of an attr tree in place, planned and not begun."""

    @property
    def changes(self) -> int:
        """How many entries differ; a directory that moved with all below it counts once."""
        ...

    def run(self) -> int:
        """Do it; an `OSError` leaves each entry old or new.

        Returns how many entries could not be given their owner.
        """
        ...


class AttrTreeKind(Protocol):
    """One way to keep names, sizes and times without content.

    Each call happens under the module's lock.  `owners` is None for a module that records no
    owners: everything belongs to whoever runs.
    """

    @property
    def writable(self) -> bool:
        """Whether somebody else can change one that is made, so that it has to be looked at."""
        ...

    def memory(self, totals: Totals) -> int:
        """Bytes of memory, or of disk, that an attr tree of so many entries takes; about."""
        ...

    def check_room(self, folder: Path, totals: Totals) -> None:
        """`AttrTreeError` unless one of this size can be made below `folder` here and now."""
        ...

    def make(self, generation: Path, snapshot: Snapshot, owners: OwnerIds | None) -> int:
        """Make a whole one at `generation`, which does not exist.

        Returns how many entries could not be given their owner.  What a failure leaves is
        discarded by the caller.
        """
        ...

    def plan(
        self, generation: Path, old: Snapshot, new: Snapshot, owners: OwnerIds | None
    ) -> Update | None:
        """How to take the one at `generation` from `old` to `new`; None: only by a new one."""
        ...

    def discard(self, generation: Path) -> None:
        """Delete the one at `generation`, which no daemon serves any more, whole or not."""
        ...
