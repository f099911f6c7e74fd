"""Trees compared with entries, as adopting and verifying compare them with a commit."""

from collections.abc import Iterable, Iterator

from huai_client.diff.compare import Finding, TreeComparison
from huai_client.diff.findings import Difference, FoundDifference
from huai_client.diff.selection import Selection
from huai_client.filters import EVERYTHING
from huai_client.tree import View
from huai_client.verify.check import VerifyTotals, check_steps
from huai_schema.entries import Entry
from tests.support.schema.trees import snapshot


def selection_of(entries: Iterable[Entry]) -> Selection:
    """A commit of `entries`, whatever their order; the top directory is one of them."""
    return Selection(snapshot({entry.path: entry for entry in entries}), EVERYTHING)


def compared(view: View, wanted: Iterable[Entry]) -> Iterator[Finding]:
    """What differs between a tree and `wanted`, as far as attributes tell."""
    return TreeComparison(view, selection_of(wanted), owners=view.owners).findings()


def verify(
    view: View, wanted: Selection | Iterable[Entry], *, content: bool, owners: bool
) -> Iterator[Difference]:
    """What differs between a tree and `wanted`; with `content` the BLAKE3 of files too."""
    selection = wanted if isinstance(wanted, Selection) else selection_of(wanted)
    comparison = TreeComparison(
        view, selection, owners=view.owners if owners else None, content=content
    )
    for item in check_steps(view, comparison.steps(), VerifyTotals(), content=content):
        if isinstance(item, FoundDifference):
            yield item.difference
