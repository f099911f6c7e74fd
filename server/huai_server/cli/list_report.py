"""The text and the JSON fields in which `huai-server` reports lists of changes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from huai_program.humanize import counted
from huai_schema.paths import RelPath, show

if TYPE_CHECKING:  # only a commit loads it
    from huai_server.commit.result import CommitResult


def list_lines(name: str, result: "CommitResult") -> Iterator[str]:
    """What there is to say of lists: what they missed, what they name in vain."""
    if result.missed:
        entries = counted(result.missed, "entry differs", "entries differ")
        yield (
            f"{name}: {entries} that no list has named since the whole tree was looked at last: "
            "the lists missed them, or they have changed since the last one"
        )
    listed = result.listed
    if listed is None:
        return
    lists = listed.lists
    if listed.scanned:
        yield f"{name}: the whole tree is looked at: {listed.scanned}"
    if not lists.paths:
        yield f"{name}: the list names no path"
    elif listed.unknown == lists.paths:
        yield f"{name}: nothing is committed: none of the named paths is there, or was"
    if lists.is_cut:
        yield f"{name}: a log ends in the middle of a line; what follows is not known"
    lines = [show(RelPath(each.line)) for each in lists.first_refused]
    yield from _some(name, lines, lists.refused, "names no path of the module, and is skipped")
    paths = [show(RelPath(path)) for path in listed.first_unknown]
    yield from _some(name, paths, listed.unknown, "is not there, and never was: it is skipped")


def list_values(result: "CommitResult") -> dict[str, object] | None:
    """What became of lists, for JSON."""
    listed = result.listed
    if listed is None:
        return None
    return {
        "paths": listed.lists.paths,
        "refused": listed.lists.refused,
        "unknown": listed.unknown,
        "cut": listed.lists.is_cut,
        "scanned": listed.scanned or None,
    }


def _some(name: str, shown: list[str], count: int, what: str) -> Iterator[str]:
    """A line for each that is shown, and one that counts the others."""
    for each in shown:
        yield f"{name}: {each}: {what}"
    if count > len(shown):
        yield f"{name}: and {count - len(shown):,} more"
