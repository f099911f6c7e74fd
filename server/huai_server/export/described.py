"""Finds the commit that an export describes: the newest one that says more than an export wrote.

Reads what differs between commits, from the newest one back, and of the first that says more only
the first difference.
"""

from huai_schema.diff.changes import Change
from huai_schema.diff.diff import Difference, diff
from huai_schema.entries import Directory
from huai_schema.layout.snapshot import Snapshot
from huai_server.export.source import Exported
from huai_server.store.repository import Head, Repository


def described(repository: Repository, exported: Exported) -> Head | None:
    """The commit; None before the first one."""
    found: Head | None = None
    for head in repository.history():
        if found is not None:
            old, new = (repository.snapshot(each)[1] for each in (head, found))
            if not is_same(old, new, exported):
                break
        found = head
    return found


def is_same(old: Snapshot, new: Snapshot, exported: Exported) -> bool:
    """Whether exports alone made the difference between two snapshots."""
    return all(_is_exported(change, exported) for change in diff(old, new))


def _is_exported(change: Difference, exported: Exported) -> bool:
    """Whether an export made a difference: one of its files, a directory that holds one."""
    if not isinstance(change, Change):
        return False
    if change.path in exported.files:
        return True
    if change.path not in exported.directories or not isinstance(change.new, Directory):
        return False
    return change.old is None or change.attributes <= {"mtime"}
