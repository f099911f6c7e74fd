"""A commit of the listed paths, or of the whole tree where that is not enough."""

import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from huai_schema.diff.diff import count
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, parent, show
from huai_server.commit.change_lists import ChangeLists
from huai_server.commit.list_record import scan_reason
from huai_server.commit.listed import (
    ListsNotEnoughError,
    WrittenTree,
    build_listed,
    prepare_export,
    scan_again,
)
from huai_server.commit.next_commit import NO_CHANGE, NextCommit
from huai_server.commit.result import CommitOptions, CommitResult, ListedResult
from huai_server.commit.whole_tree import commit_whole
from huai_server.scan.root import empty_root_error, holds_anything

if TYPE_CHECKING:
    from huai_server.export.into_tree import ExportOfTree


def commit_lists(
    making: NextCommit,
    root: Path,
    lists: ChangeLists,
    options: CommitOptions,
    export: "ExportOfTree | None" = None,
) -> CommitResult:
    """Commit the listed paths, or the whole tree if they are not enough; the result says why.

    `root` is the tree, or a snapshot of it.  Writes the files of `export` into the tree.  Raises as
    `commit_whole` does.
    """
    newest = making.head.commit if making.head else None
    scan_cause = scan_reason(making.record, newest, making.module, time.time())
    if export and not scan_cause:
        prepare_export(root, options, export)
        scan_cause = _unseen_directory(making, root, export.files)
    if not scan_cause:
        try:
            return _commit_listed(making, root, lists, export, allow_empty=options.allow_empty)
        except ListsNotEnoughError as error:
            scan_cause = str(error)
    result = commit_whole(making, root, options, export)
    return result._replace(listed=ListedResult(lists, scan_cause, 0, ()))


def _unseen_directory(making: NextCommit, root: Path, files: Collection[RelPath]) -> str:
    """Return why lists are not enough if one of `files` is in a new directory; else an empty text.

    A directory is new if it is in the tree at `root`, and not in the last commit.
    """
    assert making.past is not None  # noqa: S101 - without a commit, everything is scanned
    for path in {parent(path) for path in files}:
        if making.past.directory(path) is None and os.path.isdir(os.path.join(bytes(root), path)):
            return f"the export's directory {show(path)} is new"
    return ""


def _commit_listed(
    making: NextCommit,
    root: Path,
    lists: ChangeLists,
    export: "ExportOfTree | None",
    *,
    allow_empty: bool,
) -> CommitResult:
    """Commit the listed paths, and the files of `export`, which are written into the tree.

    Commits nothing if no listed path exists, or did before.  Raises `ListsNotEnoughError` if the
    tree must be scanned, and, unless `allow_empty`, `EmptyRootError` for an empty tree.
    """
    past, head, record = making.past, making.head, making.record
    assert head is not None  # noqa: S101 - without a commit, everything is scanned
    assert past is not None  # noqa: S101 - likewise
    assert record is not None  # noqa: S101 - likewise
    if not allow_empty and not holds_anything(root):
        raise empty_root_error(root)
    with making.open_pack() as writer:
        listed_tree = build_listed(making, root, (past, head.info.totals), lists, writer)
        is_foreign = bool(lists.paths) and listed_tree.unknown == lists.paths
        # The lists of another tree are not written.
        top = None if is_foreign else making.finish(listed_tree.tree, writer)
    now = int(time.time())
    making.links.extend(listed_tree.pairs)
    written = WrittenTree(listed_tree.tree, top, listed_tree.totals, listed_tree.problems)
    if export and not is_foreign:
        # Always: a killed or a separate export may have left files that no list names.
        snapshot = Snapshot(making.repository, written.tree)
        export.write(making.repository, snapshot, written.totals.bytes, now)
        written = scan_again(making, root, written, export.files)
    counts = listed_tree.counts if written.tree == listed_tree.tree else None
    if written.top is None:
        counts = NO_CHANGE
    else:
        if counts is None:
            counts = count(past, Snapshot(making.repository, written.tree))
        head = making.commit(written.top, written.totals, counts, head.info.skipped, now)
    count_by_lists = record.commits_by_lists + 1
    making.save_record(head, scan_time=record.scan_time, commits_by_lists=count_by_lists)
    result = ListedResult(lists, "", listed_tree.unknown, listed_tree.first_unknown)
    changed = written.top is not None
    reader = making.reader
    problems = (*written.problems, *reader.without_digest.values())
    return CommitResult(
        *(head, changed, counts, problems, listed_tree.remarks),
        *(reader.hashed_files, reader.hashed_bytes, result),
    )
