"""What a commit means for the attr trees, and what the removal of a module does.

Rule to keep: a failure here undoes no commit; the result tells it.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from huai_schema.errors import ExitCode, HuaiError
from huai_server.config.load import ServerConfig, load
from huai_server.state.paths import FallbackPlaces, fallback_places, module_places

if TYPE_CHECKING:  # an upstream without a fallback has no need of what makes attr trees
    from huai_server.fallback.attr import AttrTreeResult


class AttrTreeUpdate(NamedTuple):
    """What became of the attr trees after a commit."""

    result: "AttrTreeResult | None" = None
    """What was done to the module's attr tree; None: it has none, or nothing could be done."""
    left_alone: str = ""
    """Why the module's attr tree was left as it is."""
    failure: HuaiError | None = None
    """Why the module's attr tree is not of the new commit."""
    removed: tuple[str, ...] = ()
    """Modules whose attr trees were deleted, because they are no longer listed from one."""
    removal_failure: HuaiError | None = None
    """Why attr trees of other modules could not be deleted."""

    @property
    def exit_code(self) -> ExitCode:
        """How the program should end."""
        return ExitCode.FALLBACK if self.failure else ExitCode.OK


def update_attr_tree(root: Path, name: str) -> AttrTreeUpdate:
    """Bring the attr tree of `name` to the newest commit, if it has one.

    Deletes the attr trees of modules that are no longer configured, or no longer have one.
    """
    config = load(root)
    update = _remove_forgotten(root, config)
    places, fallback = module_places(root, name), _places(config, name)
    if not fallback.state.exists():
        return update
    if reason := _not_ours(root, name, fallback):
        return update._replace(left_alone=reason)
    from huai_server.fallback.attr import ensure

    try:
        result = ensure(name, config.module(name), places, fallback)
    except HuaiError as error:
        return update._replace(failure=error)
    return update._replace(result=result)


def remove_attr_tree(root: Path, config: ServerConfig, name: str) -> bool:
    """Delete the attr tree of `name`, if it belongs to this root; False: clients still read it."""
    from huai_server.fallback.attr import belonging
    from huai_server.fallback.attr.remove import delete_attr_tree

    places, fallback = module_places(root, name), _places(config, name)
    return not belonging.is_own(places, fallback) or delete_attr_tree(name, places, fallback)


def _remove_forgotten(root: Path, config: ServerConfig) -> AttrTreeUpdate:
    folder = Path(config.fallback.folder)
    if not folder.is_dir():
        return AttrTreeUpdate()
    from huai_server.fallback.attr.remove import remove_forgotten

    try:
        removed = remove_forgotten(root, folder, config.attr_modules)
    except HuaiError as error:  # of other modules: this one's attr tree has to be updated
        return AttrTreeUpdate(removal_failure=error)
    return AttrTreeUpdate(removed=tuple(removed))


def _not_ours(root: Path, name: str, fallback: FallbackPlaces) -> str:
    """Why this commit must not change the attr tree; empty: it may."""
    from huai_server.fallback.attr import belonging

    if not belonging.is_own(module_places(root, name), fallback):
        owner = belonging.owner(fallback)
        reason = (
            f"the attr tree belongs to the state root {owner}"
            if owner is not None
            else "an older huai made the attr tree: run huai-server fallback build"
        )
        if belonging.is_orphan(fallback):
            reason += f", which is gone: run huai-server fallback build {name}, or fallback remove"
        return f"{fallback.folder}: {reason}; this commit leaves it as it is"
    if not os.access(fallback.folder, os.W_OK):
        return "the attr tree belongs to another user; `fallback serve` brings it along"
    return ""


def _places(config: ServerConfig, name: str) -> FallbackPlaces:
    return fallback_places(Path(config.fallback.folder), name)
