"""One export: find the described commit, and write the requested files.

The caller holds the module's lock: a commit sees either none or all of an export's files.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from time import time as clock
from typing import NamedTuple

from huai_schema.diff.changes import Change
from huai_schema.diff.diff import Difference, diff
from huai_schema.entries import Directory, File
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import ROOT, RelPath, join, parent
from huai_server.export import fedora
from huai_server.export.dialects import DIALECTS, FEDORA, Texts, all_paths
from huai_server.export.folder import ExportFolder
from huai_server.export.source import Exported, ExportRequest, Source
from huai_server.store.repository import Head, NoCommitError, Repository


@dataclass(frozen=True, slots=True)
class Place:
    """The folder that an export writes to."""

    tree: bytes
    """The path of the tree."""
    inside: RelPath | None
    """The folder relative to the tree's root; None if it is outside the tree."""
    outside: bytes = b""
    """The path of a folder outside the tree; empty for one inside."""


class ExportPlan(NamedTuple):
    """The place and the content of an export."""

    place: Place
    request: ExportRequest
    exported: Exported
    """All exported files in the tree, including those that this export does not write."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One file of an export."""

    path: RelPath
    """The path below the export's folder."""
    size: int
    changed: bool
    """False if the file had the same content before and was not written."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The result of an export."""

    files: tuple[WrittenFile, ...]
    left_out: int
    """The number of names that Fedora's lists cannot hold; a directory counts once."""

    @property
    def changed(self) -> bool:
        """True if any file was written."""
        return any(file.changed for file in self.files)


def exported_files(place: Place, request: ExportRequest) -> tuple[RelPath, ...]:
    """Return the files of an export relative to the tree's root; none if its folder is outside."""
    if place.inside is None:
        return ()
    return tuple(join(place.inside, path) for path in all_paths(request))


@dataclass(frozen=True, slots=True)
class UncommittedTree:
    """A tree that is about to be committed."""

    snapshot: Snapshot
    size: int
    """The bytes of all files."""
    time: int
    """The time of the commit, in seconds since the epoch."""
    exported: Exported


def export(
    repository: Repository, module: str, place: Place, request: ExportRequest, exported: Exported
) -> tuple[Head, ExportResult]:
    """Write the requested files; `exported` are those that any export of the module writes.

    The caller holds the module's lock.  Returns the described commit, the newest that changed other
    files, and the result.  Raises `NoCommitError`, `ExportError` if a file cannot be written, and
    `FolderError`.
    """
    head = _find_described(repository, exported)
    if head is None:
        raise NoCommitError(module)
    snapshot = repository.snapshot(head)[1]
    source = _source_of(module, snapshot, head.info.totals.bytes, head.time, exported)
    return head, ExportResult(*_write_files(source, place, request))


def export_scanned(
    repository: Repository, module: str, place: Place, request: ExportRequest, tree: UncommittedTree
) -> tuple[Head | None, ExportResult]:
    """Write the files for a tree that is about to be committed, if more than exports changed it.

    Otherwise writes those of the last commit with such a change.  Returns the described commit, or
    None if it is the one to be made, and the result.  Raises `ExportError` and `FolderError`.
    """
    newest = repository.head()
    if newest and _is_same(repository.snapshot(newest)[1], tree.snapshot, tree.exported):
        return export(repository, module, place, request, tree.exported)
    source = _source_of(module, tree.snapshot, tree.size, tree.time, tree.exported)
    return None, ExportResult(*_write_files(source, place, request))


def make_directories(place: Place, request: ExportRequest) -> None:
    """Create the directories that an export needs in the tree, so that a commit lists them.

    Those that get a `B3SUMS` are not created.  Raises `FolderError` for one behind a symlink.
    """
    if place.inside is None:
        return
    with closing(ExportFolder(place.tree)) as folder:
        for path in all_paths(replace(request, sums=())):
            folder.make(parent(join(place.inside, path)))


def _find_described(repository: Repository, exported: Exported) -> Head | None:
    """Return the newest commit with a change other than an export's; None before the first one.

    Compares consecutive commits, from the newest one back, up to the first such change.
    """
    candidate: Head | None = None
    for head in repository.history():
        if candidate is not None:
            old, new = (repository.snapshot(each)[1] for each in (head, candidate))
            if not _is_same(old, new, exported):
                break
        candidate = head
    return candidate


def _is_same(old: Snapshot, new: Snapshot, exported: Exported) -> bool:
    """Return True if exports alone made the differences between two snapshots."""
    return all(_is_exported(change, exported) for change in diff(old, new))


def _is_exported(change: Difference, exported: Exported) -> bool:
    """Return True if an export made the change: to one of its files, or a directory with one.

    Such a directory may only be new, or differ in its time.
    """
    if not isinstance(change, Change):
        return False
    if change.path in exported.files:
        return True
    if change.path not in exported.directories or not isinstance(change.new, Directory):
        return False
    return change.old is None or change.attributes <= {"mtime"}


def _source_of(module: str, snapshot: Snapshot, size: int, time: int, exported: Exported) -> Source:
    """Return the source of an export from a commit with this `time` and `size` of all files.

    The source's size leaves out the files that exports write.
    """
    own = (snapshot.leaf(path) for path in exported.files)
    size -= sum(leaf.size for leaf in own if isinstance(leaf, File))
    return Source(module, snapshot, size, time, int(clock()), exported)


def _write_files(
    source: Source, place: Place, request: ExportRequest
) -> tuple[tuple[WrittenFile, ...], int]:
    """Write the requested files; return them, and the number of names left out of lists."""
    prefix = place.inside or ROOT
    with ExitStack() as closed:
        tree = closed.enter_context(closing(ExportFolder(place.tree)))
        folder = tree
        if place.inside is None:
            folder = closed.enter_context(closing(ExportFolder(place.outside)))
        for path in all_paths(request):
            folder.remove_unfinished(join(prefix, path))

        def replace_files(texts: Texts) -> Iterator[WrittenFile]:
            for path, parts in texts:
                yield WrittenFile(path, *folder.replace(join(prefix, path), parts))

        written: list[WrittenFile] = []
        for name, dialect in DIALECTS.items():
            if name in request.dialects:
                written += replace_files(dialect.texts(source, request))
        left_out = 0
        if FEDORA in request.dialects:
            unlisted = {join(prefix, path) for path in fedora.paths(request)}
            listed = [each for each in tree.existing(source.exported) if each.path not in unlisted]
            lists = fedora.Lists(source, request, listed)
            written += replace_files(lists.texts())
            left_out = lists.left_out
    return tuple(written), left_out
