"""The state and the newest commit of one module, and deleting it.

The mirrored tree is never touched.
"""

import shutil
from typing import NamedTuple

from huai_program.locking import holder, locked
from huai_schema.codec.pending import PendingCommit
from huai_schema.errors import HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_server.state.errors import storage_errors
from huai_server.state.paths import ModulePlaces
from huai_server.store.repository import Head, NoCommitError, Repository


class ModuleState(NamedTuple):
    """The state of a module for `status`."""

    head: Head | None
    """The newest commit; None before the first one, or if it cannot be read."""
    pending: PendingCommit | None
    """The later commit that is pending."""
    problem: HuaiError | None
    """The reason why the repository cannot be read; None if it can be."""
    running: int | None
    """The process id of the run that holds the module's lock; None without one."""


def module_state(places: ModulePlaces) -> ModuleState:
    """Read the state; for a damaged or unreadable repository, `problem` has the error.

    A missing repository is a state without commits.
    """
    head: Head | None = None
    waiting: tuple[str, PendingCommit] | None = None
    problem: HuaiError | None = None
    try:
        with storage_errors(places.repository):
            if places.repository.exists():
                repository = Repository(places.repository)
                head, waiting = repository.head(), repository.pending()
    except HuaiError as error:
        problem = error
    return ModuleState(head, waiting and waiting[1], problem, holder(places.lock))


def newest_commit(name: str, places: ModulePlaces) -> tuple[Head, Snapshot]:
    """Return the newest commit of a module; raises `NoCommitError` without one.

    Raises `StoreError` or `FormatError` if it is damaged.
    """
    repository = committed_repository(name, places)
    head = repository.head()
    if head is None:
        raise NoCommitError(name)
    return head, repository.snapshot(head)[1]


def committed_repository(name: str, places: ModulePlaces) -> Repository:
    """Open the repository; raises `NoCommitError` if it is missing, `StoreError` if damaged."""
    if not places.repository.exists():
        raise NoCommitError(name)
    return Repository(places.repository)


def purge_module(places: ModulePlaces) -> None:
    """Delete the module's folder with repository and caches, if it exists.

    Raises `LockedError` while another run holds the module's lock.
    """
    with storage_errors(places.folder):
        if places.folder.exists():
            with locked(places.lock):
                shutil.rmtree(places.folder)
