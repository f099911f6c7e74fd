"""A commit of what lists name, or of the whole tree where that is not enough."""

import os
import time
from collections.abc import Collection
from pathlib import Path

from huai_schema.diff.diff import count
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, parent, show
from huai_server.commit.change_lists import ChangeLists
from huai_server.commit.list_record import scan_reason
from huai_server.commit.listed import ListsNotEnoughError, build_listed
from huai_server.commit.next_commit import NO_CHANGE, NextCommit
from huai_server.commit.result import CommitOptions, CommitResult, ListedResult
from huai_server.commit.tree_export import TreeExport, WrittenTree, look_again, prepare
from huai_server.commit.whole_tree import commit_whole
from huai_server.scan.root import empty_root, holds_anything


def commit_lists(
    making: NextCommit,
    root: Path,
    lists: ChangeLists,
    options: CommitOptions,
    export: TreeExport | None = None,
) -> CommitResult:
    """Commit what lists name; or the whole tree, if there is a reason."""
    newest = making.head.commit if making.head else None
    reason = scan_reason(making.record, newest, making.module, time.time())
    said = reason.text if reason else ""
    if export and not said:
        prepare(root, options, export)
        said = _unseen_directory(making, root, export.files)
    if not said:
        try:
            return _take(making, root, lists, export, allow_empty=options.allow_empty)
        except ListsNotEnoughError as error:
            said = str(error)
    result = commit_whole(making, root, options, export)
    return result._replace(listed=ListedResult(lists, said, 0, ()))


def _unseen_directory(making: NextCommit, root: Path, files: Collection[RelPath]) -> str:
    """Why files in it cannot be committed by a list; empty: there is no such directory."""
    assert making.past is not None  # noqa: S101 - there is a reason to scan if there is none
    for path in {parent(path) for path in files}:
        if making.past.directory(path) is None and os.path.isdir(os.path.join(bytes(root), path)):
            return f"the export's directory {show(path)} is new"
    return ""


def _take(
    making: NextCommit,
    root: Path,
    lists: ChangeLists,
    export: TreeExport | None,
    *,
    allow_empty: bool,
) -> CommitResult:
    past, head, record = making.past, making.head, making.record
    assert head is not None  # noqa: S101 - there is a reason to scan if there is none
    assert past is not None  # noqa: S101 - the same
    assert record is not None  # noqa: S101 - the same
    if not allow_empty and not holds_anything(root):
        raise empty_root(root)
    with making.writing() as writer:
        found = build_listed(making, root, (past, head.info.totals), lists, writer)
        other = bool(lists.paths) and found.unknown == lists.paths
        if other:  # the lists of another tree
            writer.abort()
            top = None
        else:
            top = making.finish(found.tree, writer)
    now = int(time.time())
    making.links.extend(found.pairs)
    seen = WrittenTree(found.tree, top, found.totals, found.problems)
    if export and not other:
        # Always: an export that was killed, or made by itself, left files that no list names.
        snapshot = Snapshot(making.repository, seen.tree)
        export.write(making.repository, snapshot, seen.totals.bytes, now)
        seen = look_again(making, root, seen, export.files)
    counts = NO_CHANGE
    if seen.top is not None:
        counts = count(past, Snapshot(making.repository, seen.tree))
        head = making.commit(seen.top, seen.totals, counts, head.info.skipped, now)
    making.note(head, scanned=record.scanned, lists=record.lists + 1)
    listed = ListedResult(lists, "", found.unknown, found.first_unknown)
    changed = seen.top is not None
    reader = making.reader
    problems = (*seen.problems, *reader.without_digest.values())
    return CommitResult(
        *(head, changed, counts, problems, found.remarks),
        *(reader.hashed_files, reader.hashed_bytes, listed),
    )
