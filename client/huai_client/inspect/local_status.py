"""The comparison of one path of the tree with the applied commit.

Reads the attributes of that path, and no content; changes nothing.
"""

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from huai_client.diff.table import compare_path
from huai_client.tree import PathError, View
from huai_schema.entries import Entry
from huai_schema.errors import HuaiError
from huai_schema.paths import RelPath


class PathStatus(StrEnum):
    """The status of a path in the tree."""

    AS_APPLIED = "as applied"
    DIFFERS = "differs"
    MISSING = "missing"
    EXTRANEOUS = "extraneous"
    """In the tree, and not in the applied commit."""
    NOTHING = "nothing"
    """In neither of them."""
    UNREADABLE = "unreadable"


class LocalStatus(NamedTuple):
    """The status of one path, with details."""

    status: PathStatus
    attributes: tuple[str, ...] = ()
    """The names of the attributes for `DIFFERS`, sorted."""
    entry: Entry | None = None
    """The local entry; None also for a device, socket or fifo."""
    reason: str = ""
    """The reason for `UNREADABLE`."""


def local_status(
    dest: Path, path: RelPath, expected: Entry | None, *, owners: bool = True
) -> LocalStatus:
    """Compare the local entry at `path` with `expected`; a failure becomes `UNREADABLE`.

    Without `owners`, owner and group are not compared.
    """
    try:
        with View(dest, owners=owners) as view:
            return _compare(view, path, expected)
    except PathError as error:
        return LocalStatus(PathStatus.UNREADABLE, reason=error.reason)
    except HuaiError as error:
        return LocalStatus(PathStatus.UNREADABLE, reason=error.message)


def _compare(view: View, path: RelPath, expected: Entry | None) -> LocalStatus:
    candidate = compare_path(view, path, expected)
    if not candidate.present:
        return LocalStatus(PathStatus.NOTHING if expected is None else PathStatus.MISSING)
    if expected is None:
        return LocalStatus(PathStatus.EXTRANEOUS, entry=candidate.have)
    status = PathStatus.DIFFERS if candidate.differing else PathStatus.AS_APPLIED
    return LocalStatus(status, tuple(sorted(candidate.differing)), candidate.have)
