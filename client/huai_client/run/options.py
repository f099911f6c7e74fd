"""What a single run may do differently from the configuration."""

from typing import TYPE_CHECKING

import msgspec

from huai_client.run.deadline import NEVER, Deadline

if TYPE_CHECKING:
    from huai_client.filters import Rules


class SyncOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a single run may do differently."""

    max_delete: str | None = None
    """Instead of the configured limit."""
    adopt: bool = False
    """Compare the whole tree, whatever is recorded about it."""
    delete_extraneous: bool = False
    """Delete what no snapshot names, where the whole tree is compared."""
    accept_rollback: bool = False
    """Go back to a lower serial."""
    max_delete_in: tuple[str, ...] = ()
    """Each DIRECTORY=LIMIT, instead of what is configured for that directory."""
    unhold: bool = False
    """Go on after an undo."""
    filter: tuple[str, ...] | None = None
    """To be planned for instead of the configured one; its files count from where we are."""
    only: "Rules | None" = None
    """Add and change what these let through, delete nothing: a part of the next whole run."""
    deadline: Deadline = NEVER
    """When to stop."""
    compare: bool = False
    """Compare the whole tree with what was applied too, and repair it."""
    undeletable: "Rules | None" = None
    """What these protect, as rsync's receiving side does, is not deleted."""
