"""Whether a tree is all of its commit, so that others may copy from it: relays and attestations."""

from huai_client.diff.selection import Selection
from huai_schema.paths import RelPath

_PATTERN = frozenset("*?[\\")


def left_out(selection: Selection, protect: tuple[str, ...]) -> str:
    """What is left out of the commit, in words; empty: nothing.

    Costs a look at each path of `protect`.  A pattern counts as something that is left out: to know
    better, all entries would have to be compared with it.
    """
    if selection.rules:
        return "a filter leaves out a part"
    for each in protect:
        if not each.startswith("/") or _PATTERN.intersection(each):
            return f"protect has {each!r}, which may leave out a part"
        path = each.strip("/").encode("utf-8", "surrogateescape")
        if path and selection.snapshot.entry(RelPath(path)) is not None:
            return f"protect leaves out {each}"
    return ""
