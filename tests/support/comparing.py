"""Trees compared with entries, as adopting and verifying compare them with a commit."""

from collections.abc import Iterable, Iterator

from huai_client.diff.candidate import Candidate, Difference, FoundDifference
from huai_client.diff.compare import Finding, Match, Missing, TreeComparison
from huai_client.diff.selection import Selection
from huai_client.filters import EVERYTHING
from huai_client.tree import View
from huai_client.verify.check import VerifyTotals, check_steps
from huai_schema.entries import Entry
from tests.support.local_entries import stat_entry
from tests.support.schema.trees import snapshot


def selection_of(entries: Iterable[Entry]) -> Selection:
    """A commit of `entries`, whatever their order; the top directory is one of them."""
    return Selection(snapshot({entry.path: entry for entry in entries}), EVERYTHING)


def compared(view: View, entries: Iterable[Entry]) -> Iterator[Finding]:
    """Yield the differences between a tree and `entries`, by attributes alone."""
    comparison = TreeComparison(view, selection_of(entries))
    return (finding for step in comparison.steps() for finding in step.findings)


def looked_at(view: View, finding: Match | Missing) -> Candidate:
    """Return the candidate of a finding, by a look at its path."""
    entry = finding.expected
    local, status = stat_entry(view, entry.path), view.stat(entry.path)
    if local is None or status is None:
        assert isinstance(finding, Missing)
        return Candidate(entry.path, None, entry)
    assert isinstance(finding, Match)
    special, inode = local.entry is None, (local.device, local.inode)
    names = finding.attributes
    return Candidate(
        entry.path, local.entry, entry, (), special, names, status.st_nlink, inode=inode
    )


def verify(
    view: View, expected: Selection | Iterable[Entry], *, content: bool
) -> Iterator[Difference]:
    """Yield the differences between a tree and `expected`; with `content` by BLAKE3 as well."""
    selection = expected if isinstance(expected, Selection) else selection_of(expected)
    comparison = TreeComparison(view, selection, content=content)
    for item in check_steps(view, comparison.steps(), VerifyTotals(), content=content):
        if isinstance(item, FoundDifference):
            yield item.difference
