"""Committing a module: scan the tree, compare it with the last commit, write the changes.

The whole tree is scanned (`whole_tree`), or only the listed paths (`from_lists`).  Only composes;
`next_commit` has the order of writes.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from huai_native._native import FoundDigests
from huai_program.locking import locked
from huai_server.commit.from_lists import commit_lists
from huai_server.commit.list_record import LIST_RECORD
from huai_server.commit.next_commit import NO_CHANGE, CommitSettings, NextCommit
from huai_server.commit.result import USUAL, AuditResult, CommitOptions, CommitResult
from huai_server.commit.whole_tree import audit, commit_whole
from huai_server.config.tables import Module
from huai_server.scan.root import EmptyRootError
from huai_server.scan.types import root_error
from huai_server.state.closed_folder import close_folder
from huai_server.state.errors import UsageError, storage_errors
from huai_server.state.paths import ModulePlaces
from huai_server.store.repository import NoCommitError, Repository, metadata_errors

LoadSettings: TypeAlias = Callable[[], CommitSettings]
"""Called under the module's lock, for which a commit may have waited for hours."""
_Result = TypeVar("_Result")


def commit_tree(
    name: str,
    module: Module,
    places: ModulePlaces,
    options: CommitOptions = USUAL,
    load_settings: LoadSettings | None = None,
) -> CommitResult:
    """Commit the module's tree, or the paths that lists of it name, if anything changed.

    Without `load_settings` the commit is of `module`, unsigned and without an export.
    Where a file system was mounted over a directory, or is not mounted any more, the old entries of
    the directory stay; with `accept_mounts` the present ones replace them.  With keys the commit
    is signed; once half of the last signature's validity is over, an unchanged tree is signed
    again.  Files of an export are written into the tree, and are in the same commit.  Raises
    `LockedError`, `EmptyRootError`, `PendingCommitError` if cosignatures are missing, and
    `UsageError` for a snapshot with an export.
    """
    lists = options.lists(Path(module.path)) if options.lists else None

    def work(making: NextCommit) -> CommitResult:
        """Commit by lists if there are any, or else the whole tree."""
        if options.at and making.export:
            raise UsageError(
                f"{name}: the lists that it exports into its tree cannot be written to "
                f"{options.at}",
                hint="export them to another folder, or commit without --at",
            )
        root = options.at or Path(making.module.path)
        if lists is None:
            return commit_whole(making, root, options, making.export)
        return commit_lists(making, root, lists, options, making.export)

    which = name, module, places
    return _with_module(which, load_settings, options.wait, work, options.at)


def audit_tree(
    name: str,
    module: Module,
    places: ModulePlaces,
    options: CommitOptions = USUAL,
    load_settings: LoadSettings | None = None,
) -> AuditResult:
    """Compare the tree with the last commit; commits nothing.

    Of the options, `wait` and `engine` count; `load_settings` is as for `commit_tree`.  Raises
    `NoCommitError`, `EmptyRootError`, and `LockedError` after `wait` seconds.
    """

    def work(making: NextCommit) -> AuditResult:
        """Compare under the lock."""
        return audit(making, root=Path(making.module.path), options=options)

    return _with_module((name, module, places), load_settings, options.wait, work)


def commit_digests(
    name: str,
    module: Module,
    places: ModulePlaces,
    digests: FoundDigests,
    load_settings: LoadSettings | None,
    wait: float,
) -> CommitResult:
    """Add `digests` to the newest snapshot, and commit it, otherwise unchanged, if that adds any.

    `load_settings` is as for `commit_tree`.  Raises `NoCommitError`, `PendingCommitError`,
    `EmptyRootError` without a tree, and `LockedError` after `wait` seconds.
    """
    work = partial(_add_digests, digests)
    return _with_module((name, module, places), load_settings, wait, work)


def _add_digests(digests: FoundDigests, making: NextCommit) -> CommitResult:
    """Commit the newest snapshot with `digests`; no commit if they change nothing.

    The record for lists stays valid.  Raises `NoCommitError` and `PendingCommitError`.
    """
    past, head, record = making.past, making.head, making.record
    if past is None or head is None:
        raise NoCommitError(making.name)
    with making.open_pack() as writer:
        tree = digests.write(past.arguments, writer)
        top = making.finish(tree, writer)
    if top is None:
        return CommitResult(head, changed=False)
    commit = making.commit(top, head.info.totals, NO_CHANGE, head.info.skipped)
    if record is not None and record.commit == head.commit:
        LIST_RECORD.save(making.places.lists, replace(record, commit=commit.commit))
    return CommitResult(commit, changed=True)


def _with_module(
    which: tuple[str, Module, ModulePlaces],
    load_settings: LoadSettings | None,
    wait: float,
    work: Callable[[NextCommit], _Result],
    snapshot: Path | None = None,
) -> _Result:
    """Call `work` under the module's lock, after creating the module's repository if missing.

    The settings are loaded under the lock too: keys and server.toml may change before.
    `snapshot` is read in the place of the tree, `None` for the tree itself.
    Deletes what a killed run left, and closes the folder of a private module to other users.
    Raises `EmptyRootError` if the tree is not a directory, `LockedError` after `wait` seconds.
    """
    name, module, places = which
    root = snapshot or Path(module.path)
    with storage_errors(places.folder):
        if not _is_directory(root):
            raise EmptyRootError(
                f"{root}: no such directory", hint="check that its file system is mounted"
            )
        places.folder.mkdir(parents=True, exist_ok=True)
        with locked(places.lock, wait=wait):
            settings = load_settings() if load_settings else CommitSettings(module)
            if settings.module.is_private:
                close_folder(places.folder, places.root)
            repository = Repository.create(places.repository)
            repository.remove_unfinished()
            # A scan yields only well-formed data, the repository perhaps not.
            with metadata_errors(name):
                return work(NextCommit(name, settings, places, repository, snapshot))


def _is_directory(root: Path) -> bool:
    """Return True if the tree is a directory; raises `ScanError` if its path cannot be followed."""
    try:
        return root.is_dir()
    except OSError as error:  # a directory above it cannot be entered
        raise root_error(root, error) from None
