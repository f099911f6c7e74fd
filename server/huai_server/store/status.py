"""Finding out how a module stands, whatever state it is in."""

from typing import NamedTuple

from huai_schema.errors import HuaiError
from huai_schema.program.locking import holder
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
    """What is committed and what runs; trouble with a module is part of the answer."""
    head: Head | None = None
    problem: HuaiError | None = None
    try:
        with storage_errors(places.repository):
            head = read_head(places.repository) if places.repository.exists() else None
    except HuaiError as error:
        problem = error
    return ModuleState(head, problem, holder(places.lock))
