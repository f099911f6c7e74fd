"""The filter of one run, and whether the tree was made with the settings that hold now.

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
    """The rules by which the next sync mirrors; `FilterError` if they are wrong."""
    from huai_client.filters import load_rules

    module = mirror.config
    if options.filter is not None:
        return load_rules(options.filter, Path.cwd(), place="--filter", modes=module.modes)
    place = f"{mirror.name}: filter rule"
    return load_rules(module.filter, mirror.root, place=place, modes=module.modes)


def has_same_settings(mirror: Mirror, state: State) -> bool:
    """True if the tree was made with the settings of client.toml that hold now."""
    module = mirror.config
    key = rules_of(mirror, SyncOptions()).key() if module.filter else bare_key(module.modes)
    return state.filter == record_settings(module, key)
