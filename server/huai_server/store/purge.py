"""Deleting the state of a module; the mirrored tree is never touched."""

import shutil

from huai_schema.program.locking import locked
from huai_server.errors import storage_errors
from huai_server.paths import ModulePlaces


def purge_module(places: ModulePlaces) -> None:
    """Delete repository and caches; `LockedError` while a commit runs."""
    with storage_errors(places.folder):
        if places.folder.exists():
            with locked(places.lock):
                shutil.rmtree(places.folder)
