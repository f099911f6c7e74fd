"""Updating attr trees after a commit, and deleting them with their modules.

Rule to keep: a failure here does not undo the commit; the result reports it.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from huai_schema.errors import HuaiError
from huai_server.config.load import ServerConfig, load

if TYPE_CHECKING:  # an upstream without a fallback need not load them
    from huai_server.fallback.attr.ensure import AttrTreeResult
    from huai_server.fallback.attr.tree import AttrTree


class AttrTreeUpdate(NamedTuple):
    """The result for the attr trees after a commit."""

    result: "AttrTreeResult | None" = None
    """The change of the module's attr tree; None if it has none or could not be changed."""
    left_alone: str = ""
    """The reason for which the module's attr tree was not changed, or empty."""
    failure: HuaiError | None = None
    """The error because of which the attr tree does not list the new commit."""
    removed: tuple[str, ...] = ()
    """Modules whose attr trees were deleted, because they no longer list from one."""
    removal_failure: HuaiError | None = None
    """The error of deleting attr trees of other modules."""


def update_attr_tree(root: Path, name: str) -> AttrTreeUpdate:
    """Update the attr tree of `name` to the newest commit, if it exists; errors are in the result.

    One of another state root or user is left alone.  Also deletes the attr trees of modules that
    are not in server.toml, or list from none any more.
    """
    config, update = load(root), AttrTreeUpdate()
    if not Path(config.fallback.folder).is_dir():
        return update
    from huai_server.fallback.attr.ensure import ensure
    from huai_server.fallback.attr.remove import remove_forgotten
    from huai_server.fallback.attr.tree import attr_tree

    try:
        update = AttrTreeUpdate(removed=tuple(remove_forgotten(root, config)))
    except HuaiError as error:  # of other modules: still update this one's attr tree
        update = AttrTreeUpdate(removal_failure=error)
    tree = attr_tree(root, config, name)
    if not tree.fallback.state.exists():
        return update
    if reason := _refusal(tree):
        return update._replace(left_alone=reason)
    try:
        return update._replace(result=ensure(tree))
    except HuaiError as error:
        return update._replace(failure=error)


def remove_attr_tree(root: Path, config: ServerConfig, name: str) -> bool:
    """Delete this root's attr tree of `name`, if any; return False if clients still read it.

    Raises `LockedError` if another run holds its lock for a minute.
    """
    from huai_server.fallback.attr.remove import delete_attr_tree
    from huai_server.fallback.attr.tree import attr_tree

    tree = attr_tree(root, config, name)
    return not tree.is_own or delete_attr_tree(tree)


def _refusal(tree: "AttrTree") -> str:
    """Return the reason for which this commit must not change the attr tree, or an empty text."""
    folder = tree.fallback.folder
    if not tree.is_own:
        reason = (
            f"the attr tree belongs to the state root {tree.owner}"
            if tree.owner is not None
            else "an older huai made the attr tree: run huai-server fallback build"
        )
        if tree.is_orphan:
            name = tree.name
            reason += f", which is gone: run huai-server fallback build {name}, or fallback remove"
        return f"{folder}: {reason}; this commit does not change it"
    if not os.access(folder, os.W_OK):
        return "the attr tree belongs to another user; `fallback serve` updates it"
    return ""
