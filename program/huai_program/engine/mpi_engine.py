"""Tasks on the ranks of an MPI job; only this module loads mpi4py.

Rank 0 runs a program, the others its tasks.  MPI replaces no rank: if one is killed, `mpiexec` ends
the job.
"""

import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

from mpi4py import MPI
from mpi4py.futures import MPICommExecutor

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Program = Callable[[Callable[[int], NoReturn]], None]


class MpiExecutor(Executor):
    """The other ranks of this job, which outlive `shutdown`.

    Raises `OSError` outside of `run_ranks`.
    """

    ranks: Executor | None = None
    futures: "list[Future[Any]]" = []  # noqa: RUF012 - of all executors, as the ranks are
    """The futures of all tasks of the job."""

    def __init__(self) -> None:
        if self.ranks is None:
            raise OSError("this is not an MPI job")

    def submit(
        self, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Future[_T]:
        """Submit a task to the next idle rank."""
        assert self.ranks is not None  # noqa: S101 - __init__ refuses it
        future = self.ranks.submit(function, *args, **kwargs)
        self.futures.append(future)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """Cancel tasks that have not begun."""
        for future in self.futures:
            future.cancel()


def run_ranks(program: _Program) -> None:
    """Run a program in rank 0, and its tasks in the others until it ends.

    `program` gets the function that ends the job with an exit code.
    """
    with MPICommExecutor() as ranks:
        if ranks is not None:
            MpiExecutor.ranks = cast("Executor", ranks)  # as mpi4py documents
            program(_leave)


def _leave(code: int) -> NoReturn:
    """End the job with `code`; kill its ranks if one is still busy, as it may be stopped."""
    if not all(future.done() for future in MpiExecutor.futures):
        MPI.COMM_WORLD.Abort(code)
    sys.exit(code)
