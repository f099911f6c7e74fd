"""Deleting an attr tree, and freeing its memory.

New clients are refused at once.  The next call deletes a generation that a client still reads.
"""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from huai_program.locking import LockedError, locked
from huai_server.config.load import ServerConfig
from huai_server.fallback.attr import generations
from huai_server.fallback.attr.tree import AttrTree, attr_tree
from huai_server.fallback.sparse.maker import delete_tree
from huai_server.fallback.sparse.update import building
from huai_server.state.errors import storage_errors
from huai_server.state.paths import FallbackPlaces


def exists(fallback: FallbackPlaces) -> bool:
    """Return True if any part of an attr tree exists."""
    return fallback.generations.is_dir() or fallback.state.exists()


def delete_attr_tree(tree: AttrTree, *, wait: float = 60.0) -> bool:
    """Refuse new clients, and delete the attr tree; return False if clients still read a part.

    Raises `AttrTreeError` (53) if it belongs to another state root, `LockedError` after `wait` s.
    """
    fallback = tree.fallback
    tree.check_own()
    if not exists(fallback):
        return True
    with storage_errors(fallback.folder), locked(fallback.lock, wait=wait):
        tree.check_own()
        generations.stop(fallback)
        fallback.state.unlink(missing_ok=True)
        generations.discard_unserved(fallback, tree.discard)
        delete_tree(building(fallback.generations / "0"))
        if fallback.generations.is_dir() and any(fallback.generations.iterdir()):
            return False
        _clear(fallback)
        return True


def forgotten(root: Path, config: ServerConfig, names: Collection[str]) -> Iterator[AttrTree]:
    """Yield the attr trees of this root that this user may change, but those of `names`."""
    folder = Path(config.fallback.folder)
    with storage_errors(folder):
        for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
            tree = attr_tree(root, config, name)
            if name not in names and tree.is_own and os.access(tree.fallback.folder, os.W_OK):
                yield tree


def remove_forgotten(root: Path, config: ServerConfig) -> Iterator[str]:
    """Delete this root's attr trees that no module lists from any more; yield each deleted name.

    An attr tree that a client reads, or another run has locked, is left for the next call.
    """
    for tree in forgotten(root, config, config.attr_modules):
        try:
            if delete_attr_tree(tree, wait=0):
                yield tree.name
        except LockedError:
            pass


def _clear(fallback: FallbackPlaces) -> None:
    """Delete the files next to the generations, the record of the owner and the lock last.

    Deletes the folder too, unless another process has made a file in it.
    """
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
    # Another process may wait for the lock, or have made another file.
    if not any(fallback.folder.iterdir()):
        fallback.folder.rmdir()
