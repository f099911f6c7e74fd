"""The state of an attr tree: its commit, and whether an update of it was interrupted.

The file is next to the attr tree, on the same file system in memory, so that a crash of the machine
loses both.
"""

from typing import Literal

import msgspec

from huai_program.record_file import RecordFile
from huai_schema.layout.snapshot import Snapshot
from huai_server.store.repository import Head, Repository


class AttrState(msgspec.Struct, frozen=True):
    """The state of one module's attr tree."""

    kind: str
    commit: str
    """Hex id of the listed commit."""
    tree: str
    """Hex id of that commit's tree."""
    serial: int
    entries: int
    generation: str
    """Name of the folder below `generations`."""
    target: str | None = None
    """Hex id of the commit that a running update leads to; meanwhile it may list either."""
    spans: tuple[tuple[int, int], ...] = ()
    """The beginning and end of each change by huai, in nanoseconds.  A directory with another ctime
    was changed by another program (`foreign_changes`).  Empty if no program can change it."""
    version: Literal[2] = 2

    def snapshot(self, repository: Repository, newest: Head) -> Snapshot:
        """Return the listed snapshot; raises `FormatError` if the repository has not its commit."""
        return repository.snapshot(Head(self.commit, self.tree, 0, newest.info))[1]


STATE_FILE = RecordFile(AttrState, durable=False, permissions=None)
"""The file of the state; one that is missing, damaged or of another version counts as no state."""
