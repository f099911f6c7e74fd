"""A task in a thread, while a test goes on."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def background(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Let `work` go on until the block ends, which sets its event; its failure is the test's."""
    failures: list[BaseException] = []
    stop = threading.Event()

    def watched() -> None:
        try:
            work(stop)
        except BaseException as error:  # noqa: BLE001 - told by the test's own thread
            failures.append(error)

    thread = threading.Thread(target=watched)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert failures == []
