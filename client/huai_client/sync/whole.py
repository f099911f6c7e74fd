"""Whether a tree is all of its commit, so that others may copy from it: relays and attestations."""

from huai_client.config.load import Module
from huai_client.diff.selection import Selection
from huai_schema.paths import RelPath, show

_PATTERN = frozenset("*?[\\")
_LINKS = "safe_links leaves out "


def left_out(selection: Selection, module: Module, unsafe: RelPath | None, former: str) -> str:
    """Return what is left out of the commit, in words; empty: nothing.

    `unsafe` is a symlink that `safe_links` leaves out, of those that were compared.  `former` is
    what was left out before, where not all were; it holds for symlinks that were not.

    Costs a look at each path of `protect`.  A pattern counts as something that is left out: to know
    better, all entries would have to be compared with it.
    """
    if selection.rules:
        return "a filter leaves out a part"
    if unsafe is not None:
        return f"{_LINKS}{show(unsafe)}"
    for each in module.protect:
        if not each.startswith("/") or _PATTERN.intersection(each):
            return f"protect has {each!r}, which may leave out a part"
        path = each.strip("/").encode("utf-8", "surrogateescape")
        if path and selection.snapshot.entry(RelPath(path)) is not None:
            return f"protect leaves out {each}"
    return former if former.startswith(_LINKS) else ""
