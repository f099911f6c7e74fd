"""The static files of a module as server.toml and the command line want them: where to.

Each place has files of its own, made one after the other.  What fails at one place keeps no other
one waiting.
"""

import time
from collections.abc import Sequence
from math import inf
from pathlib import Path

from huai_schema.errors import FormatError, HuaiError
from huai_schema.program.locking import locked
from huai_server.config import Module
from huai_server.errors import storage_errors
from huai_server.paths import ModulePlaces
from huai_server.static.folder import Folder
from huai_server.static.publish import Published, publish
from huai_server.static.target import Target
from huai_server.static.update import StaticUpdate
from huai_server.store.repository import Repository, StoreError


def publish_module(
    name: str, module: Module, places: ModulePlaces, to: str, *, wait: float = 0
) -> Published:
    """Bring the static files at one place to the newest commit."""
    with storage_errors(Path(to)), locked(places.publishing, wait=wait):
        repository = Repository(places.repository)
        try:
            return publish(repository, _target(to, name), module.retention, now=time.time())
        except FormatError as error:
            raise StoreError(
                f"{name}: {error.message}",
                hint=f"run: huai-server check {name}, which names what is damaged",
            ) from error


def publish_after_commit(
    name: str, module: Module, places: ModulePlaces, to: Sequence[str]
) -> StaticUpdate:
    """The same for all places of a module that was committed."""
    done: list[tuple[str, Published]] = []
    failures: list[HuaiError] = []
    for each in to:
        try:
            # Another run may be about an older commit, and nobody would publish this one.
            done.append((each, publish_module(name, module, places, each, wait=inf)))
        except HuaiError as error:
            failures.append(error)
    return StaticUpdate(tuple(done), tuple(failures))


def _target(to: str, name: str) -> Target:
    return Folder(Path(to), name)
