"""Tasks on the workers of Dask; only this module loads it.

Dask runs the tasks of a dead worker again by itself.  Encryption and time-outs are those of Dask's
own configuration.
"""

import logging
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from typing import ParamSpec, TypeVar

from distributed import Client, KilledWorker, LocalCluster

_P = ParamSpec("_P")
_T = TypeVar("_T")
_SECONDS = 5
"""The time for the workers of this machine to end; after it they are killed."""


class DaskExecutor(Executor):
    """The workers of the scheduler at `address`, or one for each core of this machine.

    An empty `address` starts these.  Raises `OSError` if the scheduler cannot be reached.  The
    owner must call `shutdown`.
    """

    def __init__(self, address: str) -> None:
        # They print tracebacks if the scheduler ends, an error of the commit, or a worker does.
        for name in ("distributed.client", "tornado.application"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._cluster = None
        if not address:
            self._cluster = LocalCluster(
                threads_per_worker=1, memory_limit=None, dashboard_address=None
            )
        self._client = Client(address or self._cluster, set_as_default=False)
        # Not pure: a second copy of a task must not get the result of the first.
        self._tasks: Executor = self._client.get_executor(pure=False)

    def submit(
        self, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Future[_T]:
        """Submit a task; it fails with `BrokenExecutor` if Dask lost its workers too often."""
        task, future = self._tasks.submit(function, *args, **kwargs), Future[_T]()
        task.add_done_callback(lambda task: _settle(future, task))
        return future

    def missing(self, labels: set[str]) -> set[str]:
        """Return those of `labels` of which no worker has a resource; none if Dask cannot tell."""
        info = self._client.scheduler_info(n_workers=-1)
        workers = info["workers"].values()
        if len(workers) < info["n_workers"]:  # the scheduler did not answer
            return set()
        resources = [worker["resources"] for worker in workers]
        return {label for label in labels if all(each.get(label, 0) < 1 for each in resources)}

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Disconnect, and ask workers of this machine to end."""
        self._tasks.shutdown(wait and not cancel_futures)
        self._client.close()
        if self._cluster:
            with suppress(TimeoutError):
                self._cluster.close(_SECONDS)


def _settle(future: Future[_T], task: Future[_T]) -> None:
    """Settle `future` as `task` is, with `BrokenExecutor` in the place of Dask's error."""
    if task.cancelled():
        future.cancel()
        future.set_running_or_notify_cancel()
        return
    error = task.exception()
    if isinstance(error, KilledWorker):
        future.set_exception(BrokenExecutor(str(error)))
    elif error is not None:
        future.set_exception(error)
    else:
        future.set_result(task.result())
