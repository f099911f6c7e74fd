"""The jobs of `verify`: each can be stopped and continued at a `Checkpoint`."""

from collections.abc import Callable, Iterable, Iterator
from random import Random
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
from huai_schema.codec.columns import BATCH
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
        return _compared(view, expected, part, listings, content=content)

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
        level = expected.selection.snapshot.level(part.path, part.tree)
        listings = (each for each in level if isinstance(each, Listing))
        compared_part = compare.ComparedPart(whole_tree, scope)
        return _compared(view, expected, compared_part, listings, content=content)


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
        steps = (_compare_picked(view, expected, file) for file in files)
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
    view: View,
    expected: ExpectedTree,
    part: compare.ComparedPart,
    listings: Iterable[Listing],
    *,
    content: bool,
) -> StartedJob:
    """Start the comparison of a part of the tree, which has at least the entries of `listings`."""
    comparison = TreeComparison(
        view, expected.selection, part, protected=expected.protection.rules, content=content
    )

    def comes(path: RelPath) -> bool:
        """Return True if a directory is expected in the place of a leaf: one finding for both."""
        return expected.selection.directory(path) is not None

    steps = comparison.steps()
    if content and expected.seen_digests and not expected.seen_digests.is_empty:
        files = _seen_files(expected, listings, part.scope)
        steps = _with_seen(view, expected, comparison.steps(size=BATCH), files)
    return StartedJob(steps, lambda: comparison.extraneous(comes))


def _with_seen(
    view: View, expected: ExpectedTree, steps: Iterable[Compared], files: Iterator[File]
) -> Iterator[Compared]:
    """Yield the steps, in which seen digests count as if they were stated.

    `files` are those with one, in tree order.  Of them the engine finds only those that differ; the
    others are added to the step that reaches their paths.
    """
    waiting = next(files, None)
    for step in steps:
        findings = [_with_digest(expected, finding) for finding in step.findings]
        paths = {each.expected.path for each in findings if isinstance(each, Match | Missing)}
        count = 0
        while waiting is not None and tree_order(waiting.path, directory=False) <= step.order:
            if waiting.path in paths:
                count += 1
            elif view.has_file(waiting.path, waiting.size, waiting.mtime):
                findings.append(Match(waiting, frozenset(), has_seen_digest=True))
                count += 1
            waiting = next(files, None)
        yield step._replace(findings=iter(findings), undigested=step.undigested - count)


def _with_digest(expected: ExpectedTree, finding: Finding) -> Finding:
    """Return a match with the digest that was seen of its file, if any; else the finding."""
    if not isinstance(finding, Match):
        return finding
    entry = expected.as_seen(finding.expected)
    return finding._replace(expected=entry, has_seen_digest=entry is not finding.expected)


def _seen_files(
    expected: ExpectedTree, listings: Iterable[Listing], scope: Scope
) -> Iterator[File]:
    """Yield the required files in `listings` and `scope` that have a seen digest, with it."""
    for listing in listings:
        selected = map(expected.selection.filter_entry, decode_listing(listing))
        for entry in expected.required(filter(None, selected)):
            inside = is_within(entry.path, scope.top)
            if inside and tree_order(entry.path, directory=False) > scope.after:
                file = expected.as_seen(entry)
                if isinstance(file, File) and file is not entry:
                    yield file


def _compare_picked(view: View, expected: ExpectedTree, file: File) -> Compared:
    """Compare one file, by the digest that was seen of it if none is stated."""
    order, finding = tree_order(file.path, directory=False), _finding(view, file)
    finding = _with_digest(expected, finding)
    undigested = file.digest is None and not (
        isinstance(finding, Match) and finding.has_seen_digest
    )
    return Compared(iter([finding]), 1, 1, int(undigested), order)


def _finding(view: View, file: File) -> Finding:
    """Compare the attributes of one file, and return the finding."""
    try:
        local = compare_path(view, file.path, file)
    except PathError as error:
        return Unreadable(error.path, error.reason)
    return Match(file, local.differing) if local.present else Missing(file)
