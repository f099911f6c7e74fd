"""Deleting the state of a module; the mirrored tree is never touched."""

import shutil

from huai_schema.program.locking import locked
from huai_server.places import ModulePlaces
from huai_server.storage import storing


def purge_module(places: ModulePlaces) -> None:
    """Delete repository and caches; `LockedError` while a commit runs."""
    with storing(places.folder):
        if places.folder.exists():
            with locked(places.lock):
                shutil.rmtree(places.folder)
