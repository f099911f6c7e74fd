"""The filter of one run, and the check that the tree was made with the current settings.

The filter includes `modes`: the next sync applies a change of either.  The code for filters is not
loaded for a module without one.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from huai_client.config.mirror import Mirror
from huai_client.config.modes import bare_key
from huai_client.config.tree_settings import record_settings
from huai_client.run.options import SyncOptions
from huai_client.state.state import State

if TYPE_CHECKING:
    from huai_client.filters import Rules


def rules_of(mirror: Mirror, options: SyncOptions) -> "Rules":
    """Return the rules that the next sync uses; raises `FilterError` if they are malformed."""
    from huai_client.filters import load_rules

    module = mirror.config
    if options.filter is not None:
        return load_rules(options.filter, Path(), place="--filter", modes=module.modes)
    place = f"{mirror.name}: filter rule"
    return load_rules(module.filter, mirror.root, place=place, modes=module.modes)


def has_same_settings(mirror: Mirror, state: State) -> bool:
    """Return True if the tree was made with the current settings; raises as `rules_of`."""
    module = mirror.config
    key = rules_of(mirror, SyncOptions()).key() if module.filter else bare_key(module.modes)
    return state.filter == record_settings(module, key)
