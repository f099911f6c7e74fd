"""What an administrator does to a module: add it, commit it, remove it.

Only composes.  A program in Python that calls these does all that the command line does.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from huai_schema.errors import ExitCode
from huai_schema.program.configuration import ConfigError
from huai_server.commit.commit import audit_tree, commit_tree
from huai_server.commit.later import DigestLimits, DigestResult, digest_tree
from huai_server.commit.result import USUAL, AuditResult, CommitOptions, CommitResult
from huai_server.config import Module, add_module, load, remove_module
from huai_server.errors import storage_errors
from huai_server.exports import ExportOfTree, ExportUpdate, export_after_commit, plan_export
from huai_server.fallback.after_commit import AttrTreeUpdate, remove_attr_tree, update_attr_tree
from huai_server.fallback.conf import check_names
from huai_server.paths import module_places
from huai_server.signing.keys import open_keys
from huai_server.store.module_state import purge_module


class Committed(NamedTuple):
    """What a commit did, and what followed from it."""

    result: CommitResult
    attr_tree: AttrTreeUpdate
    export: ExportUpdate

    @property
    def exit_code(self) -> ExitCode:
        """How the program should end."""
        return self.result.exit_code or self.attr_tree.exit_code or self.export.exit_code


class Removed(NamedTuple):
    """What is left of a module."""

    kept: Path | None
    """Where its metadata stay; None: there are none."""
    attr_tree_in_use: bool
    """Whether clients still read its attr tree, which is not deleted yet."""


def add(root: Path, name: str, module: Module) -> ConfigError | None:
    """Configure a module, and make room for its state; returns why the fallback cannot serve it."""
    with storage_errors(root):
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)
        add_module(root, name, module)
        module_places(root, name).folder.mkdir(parents=True, exist_ok=True)
        config = load(root)
    try:
        check_names(config.fallback_modules)
    except ConfigError as error:  # no matter as long as nobody runs the fallback
        return error
    return None


def _ignore(_result: CommitResult) -> None:
    """Nobody asked."""


def commit(
    root: Path,
    name: str,
    options: CommitOptions = USUAL,
    on_commit: Callable[[CommitResult], object] = _ignore,
) -> Committed:
    """Commit a module's tree with its export, then bring its attr tree to the new commit.

    `on_commit` is called between the two.  What is exported to a folder outside of the tree is
    written last.
    """
    config = load(root)
    module, places = config.module(name), module_places(root, name)
    keys = open_keys(root, config.signing) if config.signing else None
    plan = plan_export(name, module) if module.export.files else None
    inside = ExportOfTree(name, plan) if plan and plan.place.inside is not None else None
    result = commit_tree(name, module, places, options, keys=keys, export=inside)
    on_commit(result)
    attr_tree = update_attr_tree(root, name)
    exported = inside.update if inside else ExportUpdate()
    if plan and not inside:
        exported = export_after_commit(name, module, places, plan)
    return Committed(result, attr_tree, exported)


def digest(root: Path, name: str, limits: DigestLimits) -> tuple[DigestResult, AttrTreeUpdate]:
    """Compute the digests that commits left out, then bring the attr tree to the new commit."""
    config = load(root)
    keys = open_keys(root, config.signing) if config.signing else None
    result = digest_tree(name, config.module(name), module_places(root, name), limits, keys)
    return result, update_attr_tree(root, name)


def audit(root: Path, name: str, *, wait: float = 0) -> AuditResult:
    """In what a module's tree differs from its last commit."""
    return audit_tree(name, load(root).module(name), module_places(root, name), wait)


def remove(root: Path, name: str, *, purge: bool) -> Removed:
    """Take a module out of the configuration, its attr tree too; `purge`: its metadata as well."""
    config = load(root)
    config.module(name)
    places = module_places(root, name)
    gone = remove_attr_tree(root, config, name)
    if purge:  # first, so that one that is refused can be repeated
        purge_module(places)
    remove_module(root, name)
    kept = places.folder if not purge and places.folder.exists() else None
    return Removed(kept, attr_tree_in_use=not gone)
