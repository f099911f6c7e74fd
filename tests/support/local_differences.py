"""Which attributes of what is there differ from what is wanted, attribute by attribute.

The second implementation of what the engine compares.
"""

from huai_client.config.modes import DefaultMode
from huai_client.tree import View
from huai_client.tree.owners import Owners
from huai_schema.entries import Entry, File, Symlink
from tests.support.local_entries import LocalEntry, stat_entry


def differences(
    observed: LocalEntry,
    expected: Entry,
    *,
    owners: Owners | None,
    leader: LocalEntry | None = None,
) -> frozenset[str]:
    """The names of the attributes in which `observed` differs from `wanted`.

    Any of "type", "size", "mtime", "mode", "owner", "group", "target", "link".  Owners are compared
    by number, and only with `owners` (None: they cannot be set); a name that is unknown on this
    machine never differs.  `leader` is the entry at `wanted.link`.
    """
    entry = observed.entry
    if type(entry) is not type(expected) or entry is None:
        return frozenset({"type"})
    unequal = {
        "mtime": entry.mtime != expected.mtime,
        # Linux gives every symlink the mode 777.
        "mode": entry.mode != expected.mode
        and not isinstance(expected, Symlink)
        and not isinstance(expected.mode, DefaultMode),
        "owner": owners is not None and owners.user(expected.owner) not in {None, observed.uid},
        "group": owners is not None and owners.group(expected.group) not in {None, observed.gid},
    }
    if isinstance(entry, File) and isinstance(expected, File):
        unequal["size"] = entry.size != expected.size
        unequal["link"] = expected.link is not None and not same_inode(observed, leader)
    elif isinstance(entry, Symlink) and isinstance(expected, Symlink):
        unequal["target"] = entry.target != expected.target
    return frozenset(name for name, differs in unequal.items() if differs)


def differences_here(view: View, observed: LocalEntry, expected: Entry) -> frozenset[str]:
    """As `differences`, with the owners and the leader that `view` has.

    Raises:
        PathError: `wanted.link` cannot be read.
    """
    link = expected.link if isinstance(expected, File) else None
    leader = None if link is None else stat_entry(view, link)
    return differences(observed, expected, owners=view.owners, leader=leader)


def same_inode(one: LocalEntry, other: LocalEntry | None) -> bool:
    """Return true if both are names of one inode."""
    return other is not None and (one.device, one.inode) == (other.device, other.inode)
