"""What a commit means for the attr trees, and what the removal of a module does.

Rule to keep: a failure here undoes no commit; the result tells it.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from huai_schema.errors import ExitCode, HuaiError
from huai_server.config.load import ServerConfig, load

if TYPE_CHECKING:  # an upstream without a fallback has no need of what makes attr trees
    from huai_server.fallback.attr.ensure import AttrTreeResult
    from huai_server.fallback.attr.tree import AttrTree


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
    config, update = load(root), AttrTreeUpdate()
    if not Path(config.fallback.folder).is_dir():
        return update
    from huai_server.fallback.attr.ensure import ensure
    from huai_server.fallback.attr.remove import remove_forgotten
    from huai_server.fallback.attr.tree import attr_tree

    try:
        update = AttrTreeUpdate(removed=tuple(remove_forgotten(root, config)))
    except HuaiError as error:  # of other modules: this one's attr tree has to be updated
        update = AttrTreeUpdate(removal_failure=error)
    tree = attr_tree(root, config, name)
    if not tree.fallback.state.exists():
        return update
    if reason := _not_ours(tree):
        return update._replace(left_alone=reason)
    try:
        return update._replace(result=ensure(tree))
    except HuaiError as error:
        return update._replace(failure=error)


def remove_attr_tree(root: Path, config: ServerConfig, name: str) -> bool:
    """Delete the attr tree of `name`, if it belongs to this root; False: clients still read it."""
    from huai_server.fallback.attr.remove import delete_attr_tree
    from huai_server.fallback.attr.tree import attr_tree

    tree = attr_tree(root, config, name)
    return not tree.is_own or delete_attr_tree(tree)


def _not_ours(tree: "AttrTree") -> str:
    """Why this commit must not change the attr tree; empty: it may."""
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
        return f"{folder}: {reason}; this commit leaves it as it is"
    if not os.access(folder, os.W_OK):
        return "the attr tree belongs to another user; `fallback serve` brings it along"
    return ""
