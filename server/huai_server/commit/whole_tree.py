"""A commit of the whole tree, and an audit, which compares the tree and commits nothing."""

import time
from itertools import islice
from pathlib import Path

from huai_native._native import PackWriter
from huai_program.packs import remove_pack
from huai_schema.codec.commits import Counts, Totals
from huai_schema.diff.diff import count, diff
from huai_schema.layout import layout
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import show
from huai_server.commit.listed import ListsNotEnoughError
from huai_server.commit.newest import no_commit
from huai_server.commit.next_commit import NO_CHANGE, NextCommit
from huai_server.commit.reading import scan_options
from huai_server.commit.result import AuditResult, CommitOptions, CommitResult
from huai_server.commit.tree_builder import TreeBuilder
from huai_server.commit.tree_export import TreeExport, WrittenTree, look_again, prepare
from huai_server.scan import scan_runs
from huai_server.scan.mounts import Mounts
from huai_server.scan.root import EmptyRootError, empty_root

_SHOWN = 20
"""Differences that an audit names."""


def commit_whole(
    making: NextCommit, root: Path, options: CommitOptions, export: TreeExport | None = None
) -> CommitResult:
    """Commit the whole tree."""
    if export:
        prepare(root, options, export)
    started = int(time.time())
    builder = _builder(making)
    seen = _write(making, root, options, builder)
    now = int(time.time())
    scanned = Snapshot(making.repository, seen.tree)
    written = export and export.write(making.repository, scanned, seen.totals.bytes, now)
    making.links.replace()
    if export and written:
        try:
            seen = look_again(making, root, seen, export.files)
        except ListsNotEnoughError:  # a file system came or went meanwhile
            making.links.abort()
            return commit_whole(making, root, options)
    head, counts = making.head, NO_CHANGE
    if seen.top is not None:
        counts = _counts(making, seen.tree, seen.totals)
        head = making.commit(seen.top, seen.totals, counts, builder.skipped, now)
        making.blocks.prune(Snapshot(making.repository, seen.tree), time.time())
    assert head is not None  # noqa: S101 - without one the tree is new
    making.note(head, scanned=started, lists=0)
    remarks, missed = builder.remarks.found(), _missed(making, counts)
    problems = (*seen.problems, *making.digests.without_digest.values())
    return CommitResult(
        *(head, seen.top is not None, counts, problems, remarks),
        *making.digests.hashed,
        missed=missed,
    )


def audit(making: NextCommit, root: Path) -> AuditResult:
    """Compare the whole tree with the last commit; what was written for that goes again."""
    if making.head is None or making.past is None:
        raise no_commit(making.name)
    builder = _builder(making)
    mounts = _mounts(making, root, accept=False)
    pack: bytes | None = None
    try:
        with making.writing() as writer:
            tree = _build(making, root, builder, mounts, writer)
            _check_not_empty(root, builder)
            pack = writer.finish()
        new = Snapshot(making.repository, tree)
        first = tuple(islice(diff(making.past, new), _SHOWN))
        counts = count(making.past, new)
    finally:
        making.links.abort()
        if pack is not None:
            remove_pack(making.repository.pack_folder, pack)
    return AuditResult(making.head, counts, first, tuple(builder.problems))


def _write(
    making: NextCommit, root: Path, options: CommitOptions, builder: TreeBuilder
) -> WrittenTree:
    """Scan, and write what is new as a pack."""
    mounts = _mounts(making, root, accept=options.accept_mounts)
    try:
        with making.writing() as writer:
            tree = _build(making, root, builder, mounts, writer)
            if not options.allow_empty:
                _check_not_empty(root, builder)
            # What is recorded from here on is of the new commit: lists may not rest on it before.
            making.places.lists.unlink(missing_ok=True)
            mounts.write()
            top = making.finish(tree, writer)
    except BaseException:
        making.links.abort()
        raise
    return WrittenTree(tree, top, builder.totals, tuple(builder.problems))


def _build(
    making: NextCommit, root: Path, builder: TreeBuilder, mounts: Mounts, writer: PackWriter
) -> bytes:
    """Scan, and write the objects of what is there; the id of the root directory's tree."""
    scanned = mounts.guard(scan_runs(root, scan_options(making.module), mounts.watched))
    with making.digests.look() as columns:
        read = columns.fill(scanned) if columns else scanned
        return layout.build(builder.listings(read), writer)


def _builder(making: NextCommit) -> TreeBuilder:
    readable = making.module.check_readable
    return TreeBuilder(making.past, check_readable=readable, record=making.links)


def _mounts(making: NextCommit, root: Path, *, accept: bool) -> Mounts:
    enter = not making.module.one_file_system
    return Mounts(root, making.places.mounts, making.past, enter=enter, accept=accept)


def _check_not_empty(root: Path, builder: TreeBuilder) -> None:
    if builder.totals.entries > 1:
        return
    if builder.problems:
        path, reason, _ = builder.problems[0]
        raise EmptyRootError(
            f"{root}: nothing in the tree could be read, for example {show(path)}: {reason}",
            hint="run the commit as the user that owns the tree",
        )
    raise empty_root(root)


def _counts(making: NextCommit, tree: bytes, totals: Totals) -> Counts:
    if making.past is None:
        return Counts(added=totals.entries)
    return count(making.past, Snapshot(making.repository, tree))


def _missed(making: NextCommit, counts: Counts) -> int | None:
    """Entries that differ although lists were to name them all."""
    record, head = making.record, making.head
    if not (record and head and record.commit == head.commit and record.lists):
        return None
    return counts.added + counts.removed + counts.changed + counts.moved
