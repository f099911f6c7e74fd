"""One run at a time for each module."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from huai_client.state import state as states
from huai_client.state.paths import ModulePlaces
from huai_schema.program.locking import locked


@contextmanager
def module_lock(places: ModulePlaces, *, wait: float, verifying: bool = False) -> Iterator[None]:
    """Hold the lock of a module, in a folder that is made if it is missing.

    With `verifying` it is the one beside it, which keeps nobody from changing the tree.
    """
    lock = locked(places.verifying if verifying else places.lock, wait=wait)
    try:
        places.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        places.folder.mkdir(mode=0o700, exist_ok=True)
        lock.__enter__()
    except OSError as error:
        raise states.StateError(
            f"{places.folder}: {error.strerror}",
            hint="run as the user that the state belongs to, or give another --root",
        ) from error
    with ExitStack() as stack:
        stack.push(lock.__exit__)
        yield
