"""The filter of one run, and whether it is the one that the tree was made with.

The filter includes `modes`: the next sync applies a change of either.  The code for filters is not
loaded for a module without one.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from huai_client.mirror import Mirror
from huai_client.modes import bare_key
from huai_client.run_options import SyncOptions
from huai_client.state.state import State

if TYPE_CHECKING:
    from huai_client.filters import Rules


def rules_of(mirror: Mirror, options: SyncOptions) -> "Rules":
    """The rules by which the next sync mirrors; `FilterError` if they are wrong."""
    from huai_client.filters import load_rules

    module = mirror.config
    if options.filter is not None:
        return load_rules(options.filter, Path.cwd(), place="--filter", modes=module.modes)
    place = f"{mirror.name}: filter rule"
    return load_rules(module.filter, mirror.root, place=place, modes=module.modes)


def same_filter(mirror: Mirror, state: State) -> bool:
    """Whether the tree was made with the filter and the modes that are configured now."""
    if not mirror.config.filter:
        return state.filter == bare_key(mirror.config.modes)
    return rules_of(mirror, SyncOptions()).key() == state.filter
