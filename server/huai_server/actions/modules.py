"""The actions of an administrator on a module: add it, commit it, remove it.

Only composes.  A Python program that calls these does all that the command line does.
Imports that a commit from a list does not need are inside functions, to save time.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from huai_program.configuration import ConfigError
from huai_program.locking import locked
from huai_schema.errors import ExitCode, HuaiError, worst_exit_code
from huai_server.commit.commit import audit_tree, commit_tree
from huai_server.commit.next_commit import CommitSettings
from huai_server.commit.read_limits import ReadLimits
from huai_server.commit.result import USUAL, AuditResult, CommitOptions, CommitResult
from huai_server.config.load import ServerConfig, add_module, config_path, load, remove_module
from huai_server.config.tables import Module
from huai_server.export.update import ExportUpdate
from huai_server.fallback.after_commit import AttrTreeUpdate, remove_attr_tree, update_attr_tree
from huai_server.state.closed_folder import close_folder
from huai_server.state.errors import UsageError, storage_errors
from huai_server.state.paths import module_places
from huai_server.static.newest import is_published
from huai_server.static.update import StaticUpdate
from huai_server.store.repository import Head, Repository, metadata_errors

if TYPE_CHECKING:
    from huai_schema.codec.pending import PendingCommit
    from huai_server.commit.later import DigestResult
    from huai_server.commit.scrub import ScrubResult
    from huai_server.commit.shard_record import ShardRecord
    from huai_server.export.into_tree import ExportOfTree
    from huai_server.relay.hand_over import HandedOver
    from huai_server.signing.keys import ServerKeys

_Result = TypeVar("_Result", CommitResult, "DigestResult")


class AfterCommit(NamedTuple):
    """The results of updating static files, attr tree and export after a commit."""

    static: StaticUpdate = StaticUpdate()
    attr_tree: AttrTreeUpdate = AttrTreeUpdate()
    export: ExportUpdate = ExportUpdate()

    @property
    def failures(self) -> list[HuaiError]:
        """The errors of failed updates, those of static files first."""
        errors = [*self.static.failures, self.export.failure, self.attr_tree.failure]
        return [failure for failure in errors if failure]

    @property
    def exit_code(self) -> ExitCode:
        """The worst exit code of failed updates, `FALLBACK` for the attr tree's; OK without one."""
        failures = (self.export.failure, *self.static.failures)
        codes = [failure.exit_code for failure in failures if failure]
        return worst_exit_code([ExitCode.FALLBACK, *codes] if self.attr_tree.failure else codes)


class Committed(NamedTuple, Generic[_Result]):
    """The result of a commit, and of the updates after it."""

    result: _Result
    after: AfterCommit

    @property
    def exit_code(self) -> ExitCode:
        """The worse exit code of the commit and of the updates after it."""
        return worst_exit_code((self.result.exit_code, self.after.exit_code))


class Relayed(NamedTuple):
    """The relayed commit, and the updates after it."""

    result: "HandedOver"
    after: AfterCommit


class Attached(NamedTuple):
    """A commit that is pending, or was until now, and the updates after it."""

    pending: "PendingCommit"
    needed: int
    """The number of signatures needed, the server's own included."""
    head: Head | None = None
    """The published commit; None while it is pending."""
    after: AfterCommit = AfterCommit()

    @property
    def signatures(self) -> int:
        """The number of signatures, with the server's own, which is made on publication."""
        return len(self.pending.signatures) + 1


class Removed(NamedTuple):
    """The remains of a module."""

    kept_folder: Path | None
    """The folder of its metadata, if they are kept."""
    attr_tree_in_use: bool
    """True if clients still read its attr tree, which is not deleted yet."""


def add(root: Path, name: str, module: Module) -> ConfigError | None:
    """Write a module into server.toml; make the state root, and the module's folder, if missing.

    The folder is made only by the owner of the root.  Returns the error that keeps the fallback
    from serving the module, or None.  Raises `ConfigError` if the name exists, or it or a value is
    not valid.
    """
    with storage_errors(root):
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)
        add_module(root, name, module)
        # Where root configures for a service that commits, the service makes the folder.
        if root.stat().st_uid == os.geteuid():
            folder = module_places(root, name).folder
            folder.mkdir(parents=True, exist_ok=True)
            if module.is_private:
                close_folder(folder, root)
        config = load(root)
    from huai_server.fallback.conf import clashing_names

    return clashing_names(config.fallback_modules).get(name)  # harmless without the fallback


def _ignore(_result: CommitResult) -> None:
    """Do nothing."""


def commit(
    root: Path,
    name: str,
    options: CommitOptions = USUAL,
    on_commit: Callable[[CommitResult], object] = _ignore,
) -> Committed[CommitResult]:
    """Commit a module's tree with its export, then update all that depends on the commit.

    `root` is the state root.  `on_commit` is called between the two.  Static files are written
    first, because downstreams wait for them, then the attr tree, then an export to a folder outside
    of the tree; their errors are in the result.  An error of the commit is raised, as by
    `commit_tree`.
    """
    exports: list[ExportOfTree | None] = []

    def load_settings() -> CommitSettings:
        """Load the settings, and plan the export into the tree."""
        settings = _load_settings(root, name)
        if settings.module.export.files:
            from huai_server.actions.export import export_of_tree

            settings = settings._replace(export=export_of_tree(name, settings.module))
        exports.append(settings.export)
        return settings

    module, places = load(root).committed_module(name), module_places(root, name)
    result = commit_tree(name, module, places, options, load_settings)
    on_commit(result)
    after = _update_dependents(root, name)
    inside = exports[-1]
    exported = inside.update if inside else _export(root, name)
    return Committed(result, after._replace(export=exported))


def scan_shard(root: Path, name: str, path: bytes, base: str | None, to: Path) -> "ShardRecord":
    """Scan a directory of a module, and write the result for a commit into the folder `to`.

    `base` is a commit (hex id) or `NO_BASE`; None is the newest commit.  Raises as
    `shard_scan.scan_shard` does.
    """
    from huai_server.commit import shard_scan

    return shard_scan.scan_shard(shard_scan.ShardTask(str(root), name, path, base, str(to)))


def plan_shards(
    root: Path, name: str, where: str | None = None
) -> tuple[str, dict[bytes, tuple[int, str | None]]]:
    """Return the base of the next commit (hex id or `NO_BASE`), and its shards by path.

    Each has the number of entries in the base, and its label, if any.  With `where` only those with
    that label are returned; empty for those without one.  Raises `UnknownModuleError`,
    `ConfigError`, `UsageError` for an unknown label, and `StoreError` for a damaged repository.
    """
    from huai_server.commit import shard_plan, shard_scan
    from huai_server.commit.shard_record import shards_folder

    module, places = load(root).committed_module(name), module_places(root, name)
    labels = module.engine.labels
    if where and where not in labels.values():
        raise UsageError(
            f"{name}: no directory has the label {where!r}",
            hint="[modules.NAME.engine.where] of server.toml gives labels",
        )
    with storage_errors(places.folder), metadata_errors(name):
        past, base = shard_scan.base_of(places, None)
        planned = shard_plan.plan_shards(past, module, shards_folder(module, places))
    return base, {
        path: (entries, labels.get(path))
        for path, entries in planned.items()
        if where in {None, labels.get(path, "")}
    }


def digest(
    root: Path, name: str, limits: ReadLimits, engine: str = ""
) -> "Committed[DigestResult]":
    """Compute and commit missing digests, within `limits`; update all that depends on the commit.

    `engine` is the URL of an engine, empty for the configured one, if any.  Raises `UsageError`
    if the module is configured without digests, `NoCommitError`, and
    `ConfigError` for a relayed module.
    """
    from huai_server.commit.later import digest_tree

    module = _load_settings(root, name).module  # without keys nothing is read
    settings = partial(_load_settings, root, name)
    result = digest_tree(name, module, module_places(root, name), limits, settings, engine)
    return Committed(result, _update_dependents(root, name))


def write_pending(root: Path, name: str, output: Path) -> Attached:
    """Write a request for a signature of the pending commit to the file `output`.

    Raises `ConfigError` if commits are not signed, `SigningError` if none is pending, and
    `ConfigError` for a relayed module.
    """
    from huai_server.signing.pending import write_request

    config = load(root)
    config.committed_module(name)
    keys = _required_keys(root, config)
    pending = write_request(Repository(module_places(root, name).repository), name, output)
    return Attached(pending, keys.chain.newest.threshold)


def attach_signature(root: Path, name: str, signature: bytes, *, wait: float = 0) -> Attached:
    """Add a cosigner's signature to the pending commit.

    The last one that is needed publishes it, and updates all that depends on it as `commit` does.
    Raises `ConfigError` if commits are not signed, `SigningError` if the signature is not a
    cosigner's, and `LockedError` after `wait` seconds.
    """
    from huai_server.signing.pending import add_signature

    load(root).committed_module(name)
    places = module_places(root, name)
    with storage_errors(places.folder), locked(places.lock, wait=wait):
        keys = _required_keys(root, load(root))
        repository = Repository(places.repository)
        repository.remove_unfinished()
        pending, head = add_signature(repository, name, keys, signature)
    done = Attached(pending, keys.chain.newest.threshold, head)
    if head is None:
        return done
    after = _update_dependents(root, name)
    return done._replace(after=after._replace(export=_export(root, name)))


def relay(root: Path, name: str, *, accept_rollback: bool = False, wait: float = 0) -> Relayed:
    """Copy the commit that huai-client applied, then update all that depends on it.

    `accept_rollback` allows an older commit, or one of another module.  Raises what `hand_over`
    does, and `ConfigError` for a module that is committed here.
    """
    from huai_server.relay.hand_over import hand_over

    module, places = load(root).relayed_module(name), module_places(root, name)
    done = hand_over(name, module, places, accept_rollback=accept_rollback, wait=wait)
    return Relayed(done, _update_dependents(root, name))


def scrub(
    root: Path, name: str, limits: ReadLimits, *, full: bool, engine: str = ""
) -> "ScrubResult":
    """Read files that are due, or with `full` the rest; record those that do not match digests.

    `engine` is the URL of an engine, empty for the configured one, if any.
    Raises as `scrub_tree` does.
    """
    from huai_server.commit.scrub import scrub_tree

    module, places = load(root).committed_module(name), module_places(root, name)
    return scrub_tree(name, module, places, limits, full=full, engine=engine)


def audit(root: Path, name: str, *, wait: float = 0, engine: str = "") -> AuditResult:
    """Compare a module's tree with its last commit; commits nothing.

    `engine` is the URL of an engine, empty for the configured one, if any.  Raises `NoCommitError`,
    `EmptyRootError`, and `LockedError` after `wait` seconds.
    """
    options = CommitOptions(wait=wait, engine=engine)
    module, places = load(root).module(name), module_places(root, name)
    return audit_tree(
        name, module, places, options, lambda: CommitSettings(load(root).module(name))
    )


def remove(root: Path, name: str, *, purge: bool) -> Removed:
    """Remove a module from server.toml and all tokens; delete its attr tree unless clients read it.

    `purge` deletes its metadata too, and raises `LockedError` while a commit of it runs.  Raises
    `UnknownModuleError`.
    """
    from huai_server.state.tokens import forget_module
    from huai_server.store.module_state import purge_module

    config = load(root)
    config.module(name)
    places = module_places(root, name)
    is_removed = remove_attr_tree(root, config, name)
    if purge:  # first, so that a refused removal can be repeated
        purge_module(places)
    remove_module(root, name)
    forget_module(root, name)  # tokens must not open a later module of this name
    kept_folder = places.folder if not purge and places.folder.exists() else None
    return Removed(kept_folder, attr_tree_in_use=not is_removed)


def _load_settings(root: Path, name: str) -> CommitSettings:
    """Return the present settings for commits, without an export."""
    config = load(root)
    return CommitSettings(config.committed_module(name), _signing_keys(root, config))


def _update_dependents(root: Path, name: str) -> AfterCommit:
    """Update static files and the attr tree to the newest commit; errors are in the result."""
    return AfterCommit(_publish_static(root, name), update_attr_tree(root, name))


def _export(root: Path, name: str) -> ExportUpdate:
    """Write the export to a folder outside of the tree, if there is one."""
    if not load(root).module(name).export.files:
        return ExportUpdate()
    from huai_server.actions.export import export_after_commit

    return export_after_commit(root, name)


def _publish_static(root: Path, name: str) -> StaticUpdate:
    """Write the static files of the newest commit, and their copies; errors are in the result.

    The configuration is read again: the module may be private since the commit began.  Does nothing
    if the files are up to date, unless the module has copies or is relayed.
    """
    config, places = load(root), module_places(root, name)
    # A relay's own files have the content URLs, which server.toml may have changed.
    may_skip = not config.static_places(name) and not config.module(name).relay
    if may_skip and is_published(places.repository):
        return StaticUpdate()
    from huai_server.actions.publish import publish_after_commit

    return publish_after_commit(root, name)


def _signing_keys(root: Path, config: ServerConfig) -> "ServerKeys | None":
    """Return the keys that sign commits, None for unsigned commits; raises as `open_keys` does.

    Raises `ConfigError` if commits were signed and `[signing]` is gone: all downstreams would
    refuse the next one.
    """
    if not config.signing:
        if (keys := root / "keys").exists():
            raise ConfigError(
                f"{config_path(root)}: [signing] is missing, and {keys} is of signed commits",
                hint="restore [signing]. To end signing, move that file away: downstreams then "
                'need verify = "off"',
            )
        return None
    from huai_server.signing.keys import open_keys

    return open_keys(root, config.signing)


def _required_keys(root: Path, config: ServerConfig) -> "ServerKeys":
    """Return the keys that sign commits; raises `ConfigError` if commits are unsigned."""
    keys = _signing_keys(root, config)
    if keys is None:
        raise ConfigError(
            f"{root}: commits are not signed, so no commit waits for signatures",
            hint="huai-server key new PATH makes a key, and prints what to configure",
        )
    return keys
