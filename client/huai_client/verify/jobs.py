"""The jobs of `verify`: each can be stopped and continued at a `Checkpoint`."""

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple, Protocol

from huai_client.diff import compare
from huai_client.diff.compare import Compared, Extraneous, Finding, Match, Missing, TreeComparison
from huai_client.diff.selection import Selection
from huai_client.diff.table import compare_path
from huai_client.tree import STAGING_NAME, PathError, View
from huai_client.tree.local_entry import Unreadable
from huai_client.tree.scope import Scope
from huai_client.verify.expected import ExpectedTree
from huai_client.verify.parts import part_at
from huai_schema.codec.lines import count_files
from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory, Entry, File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.layout.snapshot import decode_listing
from huai_schema.paths import RelPath, parent, show, tree_order


class StartedJob(NamedTuple):
    """One job under way."""

    steps: Iterator[Compared]
    extraneous: Callable[[], Iterator[Extraneous]]
    """The extraneous leaves that were met, and are not among the findings yet."""


class Job(Protocol):
    """A piece of the tree to verify."""

    path: RelPath
    """The directory in whose record damage is noted."""

    def look(
        self, view: View, expected: ExpectedTree, after: bytes, *, content: bool
    ) -> StartedJob:
        """Begin behind `after`, the order of a `Checkpoint`; empty: at the beginning.

        With `content` files that are to be read are found too.
        """


class NoSuchPathError(HuaiError):
    """There is nothing to verify."""

    exit_code = ExitCode.USAGE


class PathJob:
    """A path with everything below it."""

    def __init__(self, path: RelPath) -> None:
        """A directory or a leaf, or what should not be there."""
        self.path = path

    def look(
        self, view: View, expected: ExpectedTree, after: bytes, *, content: bool
    ) -> StartedJob:
        """As `Job`; `NoSuchPathError` for a path that is neither in the commit nor in the tree."""
        staging = STAGING_NAME in self.path.split(b"/")
        absent = expected.selection.entry(self.path) is None and view.stat(self.path) is None
        if staging or absent:
            raise NoSuchPathError(
                f"{show(self.path)} is neither in the applied commit nor in {view.dest}",
                hint="give a path relative to the top of the module",
            )
        part = compare.Part(self._wanted(expected.selection), Scope(self.path, after=after))
        return _compared(view, expected, part, content=content)

    def _wanted(self, selection: Selection) -> list[Listing]:
        """The listings that hold what is wanted, small because they are no part's."""
        entry = selection.entry(self.path)
        if entry is not None and not isinstance(entry, Directory):
            above = selection.snapshot.listing(parent(self.path))
            return [above] if above else []
        return [*selection.snapshot.subtree(self.path)]


class PartJob:
    """A part of the tree: a directory without the parts below it."""

    def __init__(self, path: RelPath) -> None:
        """The path of a part."""
        self.path = path

    def look(
        self, view: View, expected: ExpectedTree, after: bytes, *, content: bool
    ) -> StartedJob:
        """As `Job`; nothing to verify if a newer commit has no such part any more."""
        part = part_at(expected.selection, self.path)
        if part is None:
            return StartedJob(iter(()), lambda: iter(()))
        wanted = part.path, part.tree, False
        scope = Scope(part.path, part.apart, after)
        return _compared(view, expected, compare.Part(wanted, scope), content=content)


class SampleJob:
    """Files of the whole tree, picked at random."""

    path = RelPath(b"")

    def __init__(self, share: float, seed: int) -> None:
        """`share`: how likely each file is picked, from 0 to 1."""
        self._share = share
        self._seed = seed

    def look(
        self,
        view: View,
        expected: ExpectedTree,
        after: bytes,
        *,
        content: bool,  # noqa: ARG002
    ) -> StartedJob:
        """As `Job`; each file is found, whatever `content` says."""
        entries = expected.entries(self._picked(expected.selection))
        files = (
            entry
            for entry in entries
            if isinstance(entry, File) and tree_order(entry.path, directory=False) > after
        )
        return StartedJob((_look_at(view, file) for file in files), lambda: iter(()))

    def _picked(self, selection: Selection) -> Iterator[Entry]:
        """The files picked; reads all metadata, and decodes only listings with such a file."""
        # Anew for each look: after a sync that came between, the same files are picked.
        random = Random(self._seed)  # noqa: S311 - nobody gains by guessing what is looked at
        for listing in selection.listings():
            files = count_files(listing.leaves)
            numbers = {number for number in range(files) if random.random() < self._share}
            if not numbers:
                continue
            found = (each for each in decode_listing(listing) if isinstance(each, File))
            for number, file in enumerate(found):
                shown = selection.shown(file) if number in numbers else None
                if shown is not None:
                    yield shown


def _compared(
    view: View, expected: ExpectedTree, part: compare.Part, *, content: bool
) -> StartedJob:
    comparison = TreeComparison(
        view,
        expected.selection,
        part,
        protected=expected.protected,
        content=content,
    )

    def comes(path: RelPath) -> bool:
        """Whether a directory is wanted in the place of a leaf: then both are one finding."""
        return expected.selection.directory(path) is not None

    return StartedJob(comparison.steps(), lambda: comparison.extraneous(comes))


def _look_at(view: View, wanted: File) -> Compared:
    """One path, looked at by itself."""
    order = tree_order(wanted.path, directory=False)
    undigested = int(wanted.digest is None)
    return Compared(iter([_finding(view, wanted)]), 1, 1, undigested, order)


def _finding(view: View, wanted: File) -> Finding:
    try:
        here = compare_path(view, wanted.path, wanted)
    except PathError as error:
        return Unreadable(error.path, error.reason)
    return Match(wanted, here.differing) if here.present else Missing(wanted)
