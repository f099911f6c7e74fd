"""The state of an attr tree: its commit, and whether an update of it was interrupted.

The file is beside the attr tree, on the same file system in memory: a crash of the machine takes
both.
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
    """Hex id of the commit that it lists."""
    tree: str
    """Hex id of that commit's tree."""
    serial: int
    entries: int
    generation: str
    """Name of the folder below `generations`."""
    target: str | None = None
    """Hex id of the commit that an update takes it to; until that ends it may list either."""
    spans: tuple[tuple[int, int], ...] = ()
    """When huai changed it: from and to, in nanoseconds.  A directory with another ctime was
    changed by another program (`foreign_changes`).  Empty: no program can change it."""
    version: Literal[2] = 2

    def snapshot(self, repository: Repository, newest: Head) -> Snapshot:
        """What it lists; raises `FormatError` if its commit is no longer in the repository."""
        return repository.snapshot(Head(self.commit, self.tree, 0, newest.info))[1]


STATE_FILE = RecordFile(AttrState, durable=False, permissions=None)
"""A state that is missing, damaged or of another version counts as none."""
