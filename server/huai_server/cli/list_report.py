"""The text and the JSON fields in which `huai-server` reports lists of changes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from huai_program.humanize import counted
from huai_schema.paths import RelPath, show

if TYPE_CHECKING:  # only a commit loads it
    from huai_server.commit.result import CommitResult


def list_lines(name: str, result: "CommitResult") -> Iterator[str]:
    """Yield remarks about lists: entries that they missed, and paths that they name in vain."""
    if result.missed:
        entries = counted(result.missed, "entry differs", "entries differ")
        yield (
            f"{name}: {entries} that no list has named since the last scan of the whole tree: the "
            "lists missed them, or they have changed since the last one"
        )
    listed = result.listed
    if listed is None:
        return
    lists = listed.lists
    if listed.scanned:
        yield f"{name}: the whole tree is scanned: {listed.scanned}"
    if not lists.paths:
        yield f"{name}: the list names no path"
    elif listed.unknown == lists.paths:
        yield f"{name}: nothing is committed: none of the listed paths exists, or did before"
    if lists.is_cut:
        yield f"{name}: a log ends in the middle of a line; what follows is unknown"
    lines = [show(RelPath(each.line)) for each in lists.first_refused]
    yield from _some(name, lines, lists.refused, "names no path of the module, and is skipped")
    paths = [show(RelPath(path)) for path in listed.first_unknown]
    yield from _some(name, paths, listed.unknown, "does not exist, and never did: it is skipped")


def list_values(result: "CommitResult") -> dict[str, object] | None:
    """Return the result for lists, for JSON."""
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


def _some(name: str, paths: list[str], count: int, remark: str) -> Iterator[str]:
    """Yield a line for each of `paths`, and one that counts the others."""
    for path in paths:
        yield f"{name}: {path}: {remark}"
    if count > len(paths):
        yield f"{name}: and {count - len(paths):,} more"
