"""The check that the hardlinks of a plan name a leader that FORMAT.md allows.  Pure.

The cost grows with the links of the plan; an error elsewhere in a listing is found when that
listing changes.
"""

from collections.abc import Iterable

from huai_client.diff.selection import Selection
from huai_client.diff.table import CandidateTable
from huai_client.filters import Rules
from huai_schema.entries import Entry, File
from huai_schema.errors import FormatError
from huai_schema.paths import RelPath, show

_STEP = 10_000


def check_hardlinks(table: CandidateTable, target: Selection) -> None:
    """Raise `FormatError` for an expected hardlink without a leader, or unlike its leader."""
    linked = [RelPath(path) for path in table.engine.linked()]
    unfiltered = Selection(target.snapshot, Rules())
    for begin in range(0, len(linked), _STEP):
        _check(unfiltered.entries_at(linked[begin : begin + _STEP]).values(), unfiltered)


def _check(entries: Iterable[Entry], unfiltered: Selection) -> None:
    links = {entry: entry.link for entry in entries if isinstance(entry, File) and entry.link}
    leaders = unfiltered.entries_at(links.values())
    for member, path in links.items():
        leader = leaders.get(path)
        if not isinstance(leader, File) or leader.link is not None:
            rule = "a hardlink to what is not the first file of a group"
        elif not _equal(member, leader):
            rule = "a hardlink differs from its group"
        else:
            continue
        raise FormatError(f"{rule}: {show(path)}", show(member.path))


def _equal(member: File, leader: File) -> bool:
    """Return True if all attributes are equal; a digest may be absent on one side."""
    digest = leader.digest if member.digest and leader.digest else member.digest
    return member._replace(link=None) == leader._replace(path=member.path, digest=digest)
