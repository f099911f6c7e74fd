"""What a single run may do differently from the configuration."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """What a single run may do differently."""

    max_delete: str | None = None
    """Instead of the configured limit."""
    adopt: bool = False
    """Compare the whole tree, whatever is recorded about it."""
    delete_strangers: bool = False
    """Delete what no snapshot names, where the whole tree is compared."""
    accept_rollback: bool = False
    """Go back to a lower serial."""
