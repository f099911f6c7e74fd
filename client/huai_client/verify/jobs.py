"""The jobs of `verify`: each can be stopped and continued at a `Checkpoint`."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from random import Random
from stat import S_ISREG
from typing import NamedTuple

from huai_client.diff import compare
from huai_client.diff.compare import (
    Compared,
    Extraneous,
    Finding,
    Match,
    Missing,
    Scope,
    TreeComparison,
)
from huai_client.diff.selection import Selection
from huai_client.diff.table import compare_path
from huai_client.tree import STAGING_NAME, PathError, View
from huai_client.tree.view import Unreadable
from huai_client.verify.expected import ExpectedTree
from huai_client.verify.parts import part_at
from huai_schema.codec.lines import count_files
from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory, Entry, File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.layout.snapshot import decode_listing
from huai_schema.paths import ROOT, RelPath, is_within, parent, show, tree_order


class StartedJob(NamedTuple):
    """A job in progress."""

    steps: Iterator[Compared]
    extraneous: Callable[[], Iterator[Extraneous]]
    """Return the extraneous leaves so far that are not among the findings yet."""


class VerifyJob:
    """A piece of the tree to verify."""

    def __init__(self, path: RelPath = ROOT) -> None:
        """Record damage for the directory `path`."""
        self.path = path

    def start(
        self, view: View, expected: ExpectedTree, after: bytes, *, content: bool
    ) -> StartedJob:
        """Begin behind `after`, the order of a `Checkpoint`, or at the beginning if it is empty.

        With `content` the findings include files to read.
        """
        raise NotImplementedError


class NoSuchPathError(HuaiError):
    """The path to verify does not exist."""

    exit_code = ExitCode.USAGE


class PathJob(VerifyJob):
    """A job for a directory, a leaf or an extraneous path, with everything below it."""

    def start(
        self, view: View, expected: ExpectedTree, after: bytes, *, content: bool
    ) -> StartedJob:
        """Begin behind `after`, as `VerifyJob.start` does.

        Raises `NoSuchPathError` for a path in neither the commit nor the tree, or in `.~tmp~`.
        """
        staging = STAGING_NAME in self.path.split(b"/")
        absent = expected.selection.entry(self.path) is None and view.stat(self.path) is None
        if staging or absent:
            raise NoSuchPathError(
                f"{show(self.path)} is neither in the applied commit nor in {view.dest}",
                hint="give a path relative to the top of the module",
            )
        listings = self._listings(expected.selection)
        part = compare.ComparedPart(listings, Scope(self.path, after=after))
        started = _compared(view, expected, part, content=content)
        if not content:
            return started
        return _with_seen(started, view, expected, listings, self.path)

    def _listings(self, selection: Selection) -> list[Listing]:
        """Return listings, unfiltered, with the expected entries; they are few outside of a part.

        For a leaf it is that of its directory, siblings included; the `Scope` narrows them.
        """
        entry = selection.entry(self.path)
        if entry is not None and not isinstance(entry, Directory):
            above = selection.snapshot.listing(parent(self.path))
            return [above] if above else []
        return [*selection.snapshot.subtree(self.path)]


class PartJob(VerifyJob):
    """A job for a part of the tree: a directory without the parts below it."""

    def start(
        self, view: View, expected: ExpectedTree, after: bytes, *, content: bool
    ) -> StartedJob:
        """Begin behind `after`; the job is empty if the commit does not have this part."""
        part = part_at(expected.selection, self.path)
        if part is None:
            return StartedJob(iter(()), lambda: iter(()))
        whole_tree = part.path, part.tree, False
        scope = Scope(part.path, part.child_paths, after)
        started = _compared(
            view, expected, compare.ComparedPart(whole_tree, scope), content=content
        )
        level = expected.selection.snapshot.level(part.path, part.tree)
        listings = (each for each in level if isinstance(each, Listing))
        return _with_seen(started, view, expected, listings) if content else started


class SampleJob(VerifyJob):
    """A job for files of the whole tree, picked at random."""

    def __init__(self, share: float, seed: int) -> None:
        """Pick each file with the probability `share`, from 0 to 1."""
        super().__init__()
        self._share = share
        self._seed = seed

    def start(
        self,
        view: View,
        expected: ExpectedTree,
        after: bytes,
        *,
        content: bool,  # noqa: ARG002
    ) -> StartedJob:
        """Begin behind `after`; the findings include all picked files, even without `content`."""
        entries = expected.required(self._picked(expected.selection))
        files = (
            entry
            for entry in entries
            if isinstance(entry, File) and tree_order(entry.path, directory=False) > after
        )
        steps = (_compare_picked(view, file, _as_seen(expected, file)) for file in files)
        return StartedJob(steps, lambda: iter(()))

    def _picked(self, selection: Selection) -> Iterator[Entry]:
        """Yield the picked files; reads all metadata, and decodes only listings with one."""
        # Seeded each time, so that the same files are picked after a sync in between.
        random = Random(self._seed)  # noqa: S311 - predicting the picked files has no use
        for listing in selection.listings():
            files = count_files(listing.leaves)
            numbers = {number for number in range(files) if random.random() < self._share}
            if not numbers:
                continue
            entries = (entry for entry in decode_listing(listing) if isinstance(entry, File))
            for number, file in enumerate(entries):
                selected = selection.filter_entry(file) if number in numbers else None
                if selected is not None:
                    yield selected


def _compared(
    view: View, expected: ExpectedTree, part: compare.ComparedPart, *, content: bool
) -> StartedJob:
    """Start the comparison of a part of the tree."""
    comparison = TreeComparison(
        view, expected.selection, part, protected=expected.protection.rules, content=content
    )

    def comes(path: RelPath) -> bool:
        """Return True if a directory is expected in the place of a leaf: one finding for both."""
        return expected.selection.directory(path) is not None

    return StartedJob(comparison.steps(), lambda: comparison.extraneous(comes))


def _with_seen(
    started: StartedJob,
    view: View,
    expected: ExpectedTree,
    listings: Iterable[Listing],
    top: RelPath = ROOT,
) -> StartedJob:
    """Return a job with further steps, for files in `listings` whose digests were seen, if any.

    `top`: only the file at this path, or the files below it.
    """
    if expected.seen_digests.is_empty:
        return started
    further = _compare_seen(view, expected, listings, top)
    return started._replace(steps=chain(started.steps, further))


def _compare_seen(
    view: View, expected: ExpectedTree, listings: Iterable[Listing], top: RelPath
) -> Iterator[Compared]:
    """Yield a step for each of `listings` with files that were seen, whose attributes are right."""
    for listing in listings:
        selected = map(expected.selection.filter_entry, decode_listing(listing))
        entries = expected.required(filter(None, selected))
        files = (
            _as_seen(expected, entry)
            for entry in entries
            if isinstance(entry, File) and entry.digest is None
        )
        findings = [
            Match(file, frozenset())
            for file in files
            if file.digest is not None
            and is_within(file.path, top)
            and _has_size_and_time(view, file)
        ]
        if findings:
            # No checkpoint can be in the middle: without an order the job goes on to its end.
            yield Compared(iter(findings), 0, 0, -len(findings), b"", len(findings))


def _as_seen(expected: ExpectedTree, file: File) -> File:
    """Return a file with the digest that was seen of it, but without a stated one.

    Without a seen digest, and for all but the first name of a hardlink, returns it unchanged.
    """
    digest = expected.seen_digests.find(file) if file.digest is None and file.link is None else None
    return file if digest is None else file._replace(digest=digest)


def _has_size_and_time(view: View, file: File) -> bool:
    """Return True if there is a file of this size and time; False if it cannot be examined."""
    try:
        status = view.stat(file.path)
    except PathError:
        return False
    return (
        status is not None
        and S_ISREG(status.st_mode)
        and (status.st_size, status.st_mtime_ns) == (file.size, file.mtime)
    )


def _compare_picked(view: View, file: File, as_seen: File) -> Compared:
    """Compare one file by the digest that `as_seen` has."""
    order = tree_order(file.path, directory=False)
    undigested, seen_files = int(as_seen.digest is None), int(as_seen.digest != file.digest)
    return Compared(iter([_finding(view, as_seen)]), 1, 1, undigested, order, seen_files)


def _finding(view: View, file: File) -> Finding:
    """Compare the attributes of one file, and return the finding."""
    try:
        local = compare_path(view, file.path, file)
    except PathError as error:
        return Unreadable(error.path, error.reason)
    return Match(file, local.differing) if local.present else Missing(file)
