"""The lock that allows one run at a time for each module."""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from huai_client.state import state as states
from huai_client.state.paths import ModulePlaces
from huai_program.disk_hints import DISK_HINTS
from huai_program.locking import locked


def _hint(error: OSError) -> str:
    if hint := DISK_HINTS.get(error.errno or 0):
        return hint
    if error.errno in (errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.EEXIST):
        return "move away what is in the place of huai's state, or give another --root"
    return "run as the user that the state belongs to, or give another --root"


@contextmanager
def module_lock(places: ModulePlaces, *, wait: float, verifying: bool = False) -> Iterator[None]:
    """Hold the lock of a module; makes its folder if it is missing.

    With `verifying` it is the separate lock of `verify`, with which the tree may still be changed.
    """
    lock = locked(places.verifying if verifying else places.lock, wait=wait)
    try:
        places.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        places.folder.mkdir(mode=0o700, exist_ok=True)
        lock.__enter__()
    except OSError as error:
        where = os.fsdecode(error.filename or places.folder)
        raise states.StateError(f"{where}: {error.strerror}", hint=_hint(error)) from error
    with ExitStack() as stack:
        stack.push(lock.__exit__)
        yield
