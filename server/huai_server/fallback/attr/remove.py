"""Deleting an attr tree, and freeing the memory that it takes.

New clients are refused at once.  What a connected client still reads stays, and is deleted by the
next call.
"""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from huai_program.locking import LockedError, locked
from huai_server.fallback.attr import belonging, generations
from huai_server.fallback.attr.deleting import delete_tree
from huai_server.fallback.attr.kinds import discard_of
from huai_server.fallback.attr.update import building
from huai_server.state.errors import storage_errors
from huai_server.state.paths import FallbackPlaces, ModulePlaces, fallback_places, module_places

_WAIT_SECONDS = 60.0


def exists(fallback: FallbackPlaces) -> bool:
    """Whether anything of an attr tree is there."""
    return fallback.generations.is_dir() or fallback.state.exists()


def delete_attr_tree(
    name: str, places: ModulePlaces, fallback: FallbackPlaces, *, wait: float = _WAIT_SECONDS
) -> bool:
    """Delete the attr tree of `name`; False: clients still read a part of it.

    Raises `AttrTreeError` (53) if it belongs to another state root.
    """
    belonging.check_own(name, places, fallback)
    if not exists(fallback):
        return True
    with storage_errors(fallback.folder), locked(fallback.lock, wait=wait):
        belonging.check_own(name, places, fallback)
        generations.stop(fallback)
        fallback.state.unlink(missing_ok=True)
        generations.discard_old(fallback, discard_of(places))
        delete_tree(building(fallback.generations / "0"))
        if fallback.generations.is_dir() and any(fallback.generations.iterdir()):
            return False
        _clear(fallback)
        return True


def forgotten(root: Path, folder: Path, kept: Collection[str]) -> Iterator[str]:
    """Modules of this root that have an attr tree below `folder` and are not among `kept`."""
    if not folder.is_dir():
        return
    with storage_errors(folder):
        for name in sorted(os.listdir(folder)):
            fallback = fallback_places(folder, name)
            own = name not in kept and belonging.is_own(module_places(root, name), fallback)
            if own and os.access(fallback.folder, os.W_OK):
                yield name


def remove_forgotten(root: Path, folder: Path, kept: Collection[str]) -> list[str]:
    """Delete the attr trees of this root's modules that are not among `kept`.

    Returns the names of those that are gone.  An attr tree that a client reads, or that another run
    has locked, is left for the next time.
    """
    gone = []
    for name in forgotten(root, folder, kept):
        try:
            if delete_attr_tree(
                name, module_places(root, name), fallback_places(folder, name), wait=0
            ):
                gone.append(name)
        except LockedError:
            pass
    return gone


def _clear(fallback: FallbackPlaces) -> None:
    """Delete the files beside the generations: the record of the owner last, but for the lock."""
    if fallback.generations.is_dir():
        fallback.generations.rmdir()
    for path in (
        fallback.tree,
        fallback.seal,
        fallback.updating,
        fallback.real,
        fallback.root,
        fallback.lock,
    ):
        path.unlink(missing_ok=True)
        path.with_name(f"{path.name}.new").unlink(missing_ok=True)
    # Somebody may wait for the lock, or have put something else there.
    if not any(fallback.folder.iterdir()):
        fallback.folder.rmdir()
