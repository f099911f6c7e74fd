"""Comparing one path of the tree with the applied commit.

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
    """What the tree holds at a path."""

    AS_APPLIED = "as applied"
    DIFFERS = "differs"
    MISSING = "missing"
    EXTRANEOUS = "extraneous"
    """It is in the tree, and not in the applied commit."""
    NOTHING = "nothing"
    """It is in neither."""
    UNREADABLE = "unreadable"


class LocalStatus(NamedTuple):
    """The status of one path, with details."""

    status: PathStatus
    attributes: tuple[str, ...] = ()
    """For `DIFFERS`: their names, sorted."""
    entry: Entry | None = None
    """What is there; None also for a device, socket or fifo."""
    reason: str = ""
    """For `UNREADABLE`: why."""


def local_status(
    dest: Path, path: RelPath, wanted: Entry | None, *, owners: bool = True
) -> LocalStatus:
    """Compare what is at `path` with `wanted`; a failure becomes `UNREADABLE`.

    Without `owners`, owner and group are not compared.
    """
    try:
        with View(dest, owners=owners) as view:
            return _compare(view, path, wanted)
    except PathError as error:
        return LocalStatus(PathStatus.UNREADABLE, reason=error.reason)
    except HuaiError as error:
        return LocalStatus(PathStatus.UNREADABLE, reason=error.message)


def _compare(view: View, path: RelPath, wanted: Entry | None) -> LocalStatus:
    found = compare_path(view, path, wanted)
    if not found.present:
        return LocalStatus(PathStatus.NOTHING if wanted is None else PathStatus.MISSING)
    if wanted is None:
        return LocalStatus(PathStatus.EXTRANEOUS, entry=found.have)
    status = PathStatus.DIFFERS if found.differing else PathStatus.AS_APPLIED
    return LocalStatus(status, tuple(sorted(found.differing)), found.have)
