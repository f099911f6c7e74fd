"""Hardlinks of equal files for which the upstream states no digest, made once they are published.

Recorded digests only tell where to look.  Order: the first file gets another name in the staging
area; both are read, by the handles that are linked and replaced; that name replaces the second one.
Rule: a file that changed since it was opened, or differs in any attribute, stays apart.
"""

import os
from contextlib import suppress

from huai_client.diff.selection import Selection
from huai_client.plan.operations import Plan
from huai_client.plan.protect import Protection
from huai_client.run.options import Deadline
from huai_client.state.seen import SeenDigests
from huai_client.tree import PathError, StorageError, Tree
from huai_client.tree.handles import closing
from huai_client.tree.hashing import digest_of
from huai_schema.entries import File
from huai_schema.paths import RelPath

_LINKS_MOST = 10_000
"""The most names that an inode gets; ext4 allows 65,000."""


def link_equal(
    plan: Plan,
    seen_digests: SeenDigests,
    tree: Tree,
    selection: Selection,
    protection: Protection,
    deadline: Deadline,
) -> None:
    """Replace files that `plan` published by hardlinks of equal ones of `selection` in `tree`.

    Those have the same content, size, time, mode and owner, and are not in `protection`.  Files
    that did not arrive, or cannot be read or linked, stay as they are, and all that are left at the
    deadline.  Raises `StateError` if the digests cannot be read, `MissingObjectError` or
    `FormatError` if the metadata cannot be.
    """
    seen_digests.make_index()
    for stage in plan.stages:
        for file in stage.fetches:
            digest = seen_digests.find(file) if file.digest is None and file.size else None
            if deadline.over:
                return
            equal = seen_digests.equal(digest, file) if digest else ()
            for path in equal:
                leader = selection.entry(path) if path != file.path else None
                is_equal = leader is not None and leader[1:] == file[1:]
                if is_equal and not protection.covers(path, directory=False):
                    with suppress(PathError, StorageError, OSError):
                        if _link(tree, path, file):
                            break


def _link(tree: Tree, leader: RelPath, file: File) -> bool:
    """Let `file` be a name of the file at `leader`; False if they are not proved to be equal.

    Raises `PathError`, `StorageError` or `OSError` if one of them cannot be read or linked.
    """
    with closing(tree.open_file(leader)) as first, closing(tree.open_file(file.path)) as second:
        if os.path.sameopenfile(first, second):
            return True
        one, other = os.fstat(first), os.fstat(second)
        is_second_alone = other.st_nlink == 1 and one.st_nlink < _LINKS_MOST
        if not is_second_alone or _attributes(one) != _attributes(other):
            return False
        if (one.st_size, one.st_mtime_ns) != (file.size, file.mtime):
            return False
        with tree.linked_aside(first) as name:
            before = _states(first, second)  # a link changes the ctime
            if digest_of(first) != digest_of(second) or _states(first, second) != before:
                return False
            tree.replace_by(name, file.path, os.fstat(second).st_ino)
        return True


def _attributes(status: os.stat_result) -> tuple[int, ...]:
    return status.st_size, status.st_mtime_ns, status.st_mode, status.st_uid, status.st_gid


def _states(*handles: int) -> list[tuple[int, ...]]:
    statuses = map(os.fstat, handles)
    return [(*_attributes(each), each.st_ctime_ns, each.st_nlink) for each in statuses]
