"""A commit of the whole tree, and an audit, which compares the tree and commits nothing."""

import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from huai_native._native import PackWriter, relink
from huai_program.packs import remove_packs
from huai_schema.codec.commits import Counts, Totals
from huai_schema.diff.diff import count, diff
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import show
from huai_server.commit.listed import ListsNotEnoughError, WrittenTree, prepare_export, scan_again
from huai_server.commit.next_commit import NO_CHANGE, NextCommit
from huai_server.commit.result import AuditResult, CommitOptions, CommitResult
from huai_server.commit.shards import Shards
from huai_server.commit.tree_reader import ReadTree
from huai_server.scan.mounts import write_mounts
from huai_server.scan.root import EmptyRootError, empty_root_error
from huai_server.store.repository import NoCommitError

if TYPE_CHECKING:
    from huai_server.export.into_tree import ExportOfTree

_SHOWN = 20


def commit_whole(
    making: NextCommit, root: Path, options: CommitOptions, export: "ExportOfTree | None" = None
) -> CommitResult:
    """Scan and commit the whole tree, and the files of `export`, which are written into it.

    `root` is the tree, or a snapshot of it.  Deletes outdated block indices, once a day.  Raises
    `EmptyRootError` for an empty tree unless `allow_empty`, `PendingCommitError` if cosignatures
    are missing, and the errors of `Shards.collect`.
    """
    if export:
        prepare_export(root, options, export)
    started = int(time.time())
    shards = Shards(making)
    shards.collect(options)
    read, top = _scan_and_write(making, root, options, shards)
    written = WrittenTree(read.tree, top, read.totals, read.problems)
    now = int(time.time())
    scanned = Snapshot(making.repository, written.tree)
    exported = export and export.write(making.repository, scanned, written.totals.bytes, now)
    making.links.replace()
    if export and exported:
        try:
            written = scan_again(making, root, written, export.files)
        except ListsNotEnoughError:  # a file system came or went meanwhile
            making.links.abort()
            return commit_whole(making, root, options)
    head, counts = making.head, NO_CHANGE
    if written.top is not None:
        counts = _counts(making, written.tree, written.totals)
        head = making.commit(written.top, written.totals, counts, read.skipped, now)
        making.blocks.prune(Snapshot(making.repository, written.tree), time.time())
    assert head is not None  # noqa: S101 - without one the tree is new
    making.save_record(head, scan_time=started, commits_by_lists=0)
    shards.finish()
    reader = making.reader
    problems = (*written.problems, *reader.without_digest.values())
    return CommitResult(
        *(head, written.top is not None, counts, problems, read.remarks),
        *(reader.hashed_files, reader.hashed_bytes),
        missed=_count_missed(making, counts),
    )


def audit(making: NextCommit, root: Path, options: CommitOptions) -> AuditResult:
    """Compare the whole tree at `root` with the last commit; deletes the packs made for that.

    Raises `NoCommitError` without a commit, `EmptyRootError` if nothing can be read.
    """
    if making.head is None or making.past is None:
        raise NoCommitError(making.name)
    shards = Shards(making, age=0)  # of the present tree
    try:
        shards.collect(options)
        read, _ = _scan(making, root, options, shards, lambda _, writer: making.store(writer))
        new = Snapshot(making.repository, read.tree)
        first = tuple(islice(diff(making.past, new), _SHOWN))
        counts = count(making.past, new)
        shards.finish()
    finally:
        making.links.abort()
        remove_packs(making.packs)
    return AuditResult(making.head, counts, first, read.problems)


def _scan_and_write(
    making: NextCommit, root: Path, options: CommitOptions, shards: Shards
) -> tuple[ReadTree, bytes | None]:
    """Scan; write new objects and mounts, delete the record for lists, add to the record of links.

    Returns the tree, and the id of the commit's git tree, or None if no commit is needed.  Raises
    `EmptyRootError` for an empty tree unless `allow_empty`; after any error the record of links is
    as before.
    """

    def finish(read: ReadTree, writer: PackWriter) -> bytes | None:
        # The records from here on are for the new commit: lists must not rely on them before.
        making.places.lists.unlink(missing_ok=True)
        write_mounts(making.places.mounts, read.mounts)
        return making.finish(read.tree, writer)

    try:
        return _scan(making, root, options, shards, finish)
    except BaseException:
        making.links.abort()
        raise


def _scan(
    making: NextCommit,
    root: Path,
    options: CommitOptions,
    shards: Shards,
    finish: Callable[[ReadTree, PackWriter], bytes | None],
) -> tuple[ReadTree, bytes | None]:
    """Scan what no shard has; write new objects, and add to the record of links.

    Also returns the result of `finish`, which finishes the last pack.  Raises `EmptyRootError`
    unless `allow_empty`.
    """
    with making.open_pack() as writer:
        read = making.reader.read_whole(
            *(making.past, making.links.add, writer),
            accept_mounts=options.accept_mounts,
            part=shards.part(),
        )
        read = shards.add_to(read)
        if not options.allow_empty:
            _check_not_empty(root, read)
        groups = shards.groups(read)
        if not groups:
            return read, finish(read, writer)
        making.store(writer)
    with making.open_pack() as writer:
        past = Snapshot(making.repository, read.tree)
        tree, pairs = relink(past.arguments, groups, writer)
        making.links.add(pairs)
        read = read._replace(tree=tree)
        return read, finish(read, writer)


def _check_not_empty(root: Path, read: ReadTree) -> None:
    """Raise `EmptyRootError` if nothing but the root was read."""
    if read.totals.entries > 1:
        return
    if read.problems:
        path, reason, _ = read.problems[0]
        raise EmptyRootError(
            f"{root}: nothing in the tree could be read, for example {show(path)}: {reason}",
            hint="run the commit as the user that owns the tree",
        )
    raise empty_root_error(root)


def _counts(making: NextCommit, tree: bytes, totals: Totals) -> Counts:
    """Count the changes since the last commit; all entries without one."""
    if making.past is None:
        return Counts(added=totals.entries, new_bytes=totals.bytes)
    return count(making.past, Snapshot(making.repository, tree))


def _count_missed(making: NextCommit, counts: Counts) -> int | None:
    """Count entries that lists should have named; None if the last commit had no lists."""
    record, head = making.record, making.head
    if not (record and head and record.commit == head.commit and record.commits_by_lists):
        return None
    return counts.total
