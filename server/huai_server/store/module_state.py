"""The state of one module as a whole: how it stands, whatever state it is in, and deleting it.

The mirrored tree is never touched.
"""

import shutil
from typing import NamedTuple

from huai_schema.errors import HuaiError
from huai_schema.program.locking import holder, locked
from huai_server.errors import storage_errors
from huai_server.paths import ModulePlaces
from huai_server.store.repository import Head, read_head


class ModuleState(NamedTuple):
    """A module as `status` sees it."""

    head: Head | None
    """The newest commit; None: there is none yet, or it cannot be read."""
    problem: HuaiError | None
    """Why it cannot be read."""
    running: int | None
    """The process of a commit that runs."""


def module_state(places: ModulePlaces) -> ModuleState:
    """Never raises for a damaged repository: `problem` says what is wrong."""
    head: Head | None = None
    problem: HuaiError | None = None
    try:
        with storage_errors(places.repository):
            head = read_head(places.repository) if places.repository.exists() else None
    except HuaiError as error:
        problem = error
    return ModuleState(head, problem, holder(places.lock))


def purge_module(places: ModulePlaces) -> None:
    """Delete repository and caches; `LockedError` while a commit runs."""
    with storage_errors(places.folder):
        if places.folder.exists():
            with locked(places.lock):
                shutil.rmtree(places.folder)
