"""One export: finds the commit that it describes, and writes what is wanted.

The caller holds the module's lock: a commit sees either none or all of an export's files.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from time import time as clock

from huai_schema.diff.changes import Change
from huai_schema.diff.diff import Difference, diff
from huai_schema.entries import Directory, File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import ROOT, RelPath, join, parent
from huai_server.export import fedora
from huai_server.export.dialects import DIALECTS, FEDORA, Texts, all_paths
from huai_server.export.folder import Folder
from huai_server.export.source import Exported, Source, Wanted
from huai_server.store.repository import Head, Repository


@dataclass(frozen=True, slots=True)
class Place:
    """Where an export writes."""

    tree: bytes
    """The module's tree."""
    inside: RelPath | None
    """The folder, from the tree's root; None: it is outside of it."""
    outside: bytes = b""
    """Then it is this one."""


@dataclass(frozen=True, slots=True)
class Written:
    """One file of an export."""

    path: RelPath
    """Below the folder."""
    size: int
    changed: bool
    """Whether it was written; False: its content stood there already."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What an export did."""

    files: tuple[Written, ...]
    left_out: int
    """Names that no line of Fedora's lists can hold; a directory counts once."""

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return any(file.changed for file in self.files)


def exported_files(place: Place, wanted: Wanted) -> tuple[RelPath, ...]:
    """The files of an export that are in the tree, seen from its root."""
    if place.inside is None:
        return ()
    return tuple(join(place.inside, path) for path in all_paths(wanted))


@dataclass(frozen=True, slots=True)
class Made:
    """A tree that is about to be committed."""

    snapshot: Snapshot
    size: int
    """Bytes of all files."""
    time: int
    exported: Exported


class NoCommitError(HuaiError):
    """There is nothing yet that an export could describe."""

    exit_code = ExitCode.UNSOUND


def export(
    repository: Repository, module: str, place: Place, wanted: Wanted, exported: Exported
) -> tuple[Head, ExportResult]:
    """Write what is wanted; `exported` are all files that exports write.

    The commit that is described, and what was written.
    """
    head = _described(repository, exported)
    if head is None:
        raise NoCommitError(
            f"{module}: there is no commit yet", hint=f"run: huai-server commit {module}"
        )
    snapshot = repository.snapshot(head)[1]
    source = _describe(module, snapshot, head.info.totals.bytes, head.time, exported)
    return head, ExportResult(*_write(source, place, wanted))


def export_scanned(
    repository: Repository, module: str, place: Place, wanted: Wanted, made: Made
) -> tuple[Head | None, ExportResult]:
    """The same with a tree that is about to be committed; None: that is what is described."""
    newest = repository.head()
    if newest and _is_same(repository.snapshot(newest)[1], made.snapshot, made.exported):
        return export(repository, module, place, wanted, made.exported)
    source = _describe(module, made.snapshot, made.size, made.time, made.exported)
    return None, ExportResult(*_write(source, place, wanted))


def make_directories(place: Place, wanted: Wanted) -> None:
    """Make the directories in the tree that an export needs, so that a commit finds them."""
    if place.inside is None:
        return
    with closing(Folder(place.tree)) as folder:
        for path in all_paths(replace(wanted, sums=())):
            folder.make(parent(join(place.inside, path)))


def _described(repository: Repository, exported: Exported) -> Head | None:
    """The newest commit that says more than an export wrote; None before the first one.

    Reads what differs between commits, from the newest one back, and of the first that says more
    only the first difference.
    """
    found: Head | None = None
    for head in repository.history():
        if found is not None:
            old, new = (repository.snapshot(each)[1] for each in (head, found))
            if not _is_same(old, new, exported):
                break
        found = head
    return found


def _is_same(old: Snapshot, new: Snapshot, exported: Exported) -> bool:
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


def _describe(module: str, snapshot: Snapshot, size: int, time: int, exported: Exported) -> Source:
    """The source of an export; `size` and `time` are those of the commit."""
    own = (snapshot.leaf(path) for path in exported.files)
    size -= sum(leaf.size for leaf in own if isinstance(leaf, File))
    return Source(module, snapshot, size, time, int(clock()), exported)


def _write(source: Source, place: Place, wanted: Wanted) -> tuple[tuple[Written, ...], int]:
    """Write what is wanted; the files, and how many names no line can hold."""
    prefix = place.inside or ROOT
    with ExitStack() as closed:
        tree = closed.enter_context(closing(Folder(place.tree)))
        folder = tree
        if place.inside is None:
            folder = closed.enter_context(closing(Folder(place.outside)))
        for path in all_paths(wanted):
            folder.remove_unfinished(join(prefix, path))

        def replaced(texts: Texts) -> Iterator[Written]:
            for path, parts in texts:
                yield Written(path, *folder.replace(join(prefix, path), parts))

        written: list[Written] = []
        for name, dialect in DIALECTS.items():
            if name in wanted.dialects:
                written += replaced(dialect.texts(source, wanted))
        left_out = 0
        if FEDORA in wanted.dialects:
            unnamed = {join(prefix, path) for path in fedora.paths(wanted)}
            others = [each for each in tree.existing(source.exported) if each.path not in unnamed]
            lists = fedora.Lists(source, wanted, others)
            written += replaced(lists.texts())
            left_out = lists.left_out
    return tuple(written), left_out
