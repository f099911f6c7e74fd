"""Trees compared with entries, as adopting and verifying compare them with a commit."""

from collections.abc import Iterable, Iterator

from huai_client.diff.candidate import Candidate
from huai_client.diff.compare import Finding, Match, Missing, TreeComparison
from huai_client.diff.findings import Difference, FoundDifference
from huai_client.diff.selection import Selection
from huai_client.filters import EVERYTHING
from huai_client.tree import View
from huai_client.tree.local_entry import stat_entry
from huai_client.verify.check import VerifyTotals, check_steps
from huai_schema.entries import Entry
from tests.support.schema.trees import snapshot


def selection_of(entries: Iterable[Entry]) -> Selection:
    """A commit of `entries`, whatever their order; the top directory is one of them."""
    return Selection(snapshot({entry.path: entry for entry in entries}), EVERYTHING)


def compared(view: View, wanted: Iterable[Entry]) -> Iterator[Finding]:
    """What differs between a tree and `wanted`, as far as attributes tell."""
    comparison = TreeComparison(view, selection_of(wanted))
    return (finding for step in comparison.steps() for finding in step.findings)


def looked_at(view: View, finding: Match | Missing) -> Candidate:
    """What a table has of a finding, by a look at its path."""
    wanted = finding.expected
    found, status = stat_entry(view, wanted.path), view.stat(wanted.path)
    if found is None or status is None:
        assert isinstance(finding, Missing)
        return Candidate(wanted.path, None, wanted)
    assert isinstance(finding, Match)
    special, inode = found.entry is None, (found.device, found.inode)
    names = finding.attributes
    return Candidate(
        wanted.path, found.entry, wanted, (), special, names, status.st_nlink, inode=inode
    )


def verify(
    view: View, wanted: Selection | Iterable[Entry], *, content: bool
) -> Iterator[Difference]:
    """What differs between a tree and `wanted`; with `content` the BLAKE3 of files too."""
    selection = wanted if isinstance(wanted, Selection) else selection_of(wanted)
    comparison = TreeComparison(view, selection, content=content)
    for item in check_steps(view, comparison.steps(), VerifyTotals(), content=content):
        if isinstance(item, FoundDifference):
            yield item.difference
