"""The options of a single run, in place of the configuration."""

from typing import TYPE_CHECKING

import msgspec

from huai_client.run.deadline import NEVER, Deadline

if TYPE_CHECKING:
    from huai_client.filters import Rules


class SyncOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a single run."""

    max_delete: str | None = None
    """The limit of deletions, in place of the configured one."""
    adopt: bool = False
    """Compare the whole tree, even if a commit is recorded as applied."""
    delete_extraneous: bool = False
    """Delete extraneous paths, where the whole tree is compared."""
    accept_rollback: bool = False
    """Go back to a lower serial."""
    max_delete_in: tuple[str, ...] = ()
    """Limits as DIRECTORY=LIMIT, in place of the configured ones."""
    unhold: bool = False
    """Continue after an undo."""
    filter: tuple[str, ...] | None = None
    """The filter to plan for, in place of the configured one; files are relative to the cwd."""
    only: "Rules | None" = None
    """Add and change only the paths that these include, and delete nothing."""
    deadline: Deadline = NEVER
    """The time to stop."""
    compare: bool = False
    """Compare the whole tree with the applied commit as well, and repair it."""
    undeletable: "Rules | None" = None
    """Rules that protect paths from deletion, as on rsync's receiving side."""
