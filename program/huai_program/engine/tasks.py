"""Runs tasks on an engine: any `concurrent.futures.Executor`.

Only `submit`, `add_done_callback` and `exception` are used, which all engines have.  A task and its
answer are text.  A task is done when its record is there, so nothing is lost with a process.

A process that is killed, or gives no sign of life for the deadline, is replaced once.  A task that
fails twice has no record.  If all processes fall silent, the run ends.
"""

import multiprocessing
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from huai_program.engine import ENGINE
from huai_program.engine.signs import BEGAN, RECORD, EngineError, TaskError, check_version
from huai_schema import __version__
from huai_schema.errors import ExitCode, HuaiError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from huai_program.engine.dask_engine import DaskExecutor

_POLL = 0.5
"""The longest time between two looks at signs of life, in seconds."""
_COPIES = 2
_SILENCE = 5
"""The deadlines without a sign of life of any task after which a run ends."""


class Task(NamedTuple):
    """A call of `work` with `text`, which writes `KEY.shard` and touches `KEY.began` (`alive`)."""

    folder: Path
    key: str
    title: str
    """Its name in messages."""
    work: Callable[[str], object]
    """A function that processes can import."""
    text: str
    label: str | None = None
    """The resource that the worker of Dask must have; None for any worker, and other engines."""

    @property
    def record(self) -> Path:
        """Return the path of its result."""
        return self.folder / (self.key + RECORD)


class _Failure(msgspec.Struct, frozen=True):
    """The error of a task; empty if there was none."""

    message: str = ""
    hint: str = ""
    code: ExitCode = ExitCode.OK
    """The exit code of the program; 0 if other tasks may fare better."""


def task_keys() -> Iterator[str]:
    """Yield keys of no other run: a process of a killed one may still write its record."""
    run = os.urandom(8).hex()
    yield from (f"{run}-{number}" for number in count())


def open_engine(url: str) -> Callable[[], Executor]:
    """Return the function that starts the engine at `url`, and raises `EngineError` if it cannot.

    Raises `EngineError` for a URL of another form, or if its library is not installed.
    """
    match = re.fullmatch(ENGINE, url)
    if match is None:
        raise EngineError(
            f"{url}: no such engine",
            "give local://N for N processes of this machine, dask://HOST:PORT, or mpi://",
            ExitCode.USAGE,
        )
    if match["processes"]:
        context, count = multiprocessing.get_context("spawn"), int(match["processes"])
        return lambda: ProcessPoolExecutor(count, context, initializer=_end_with_parent)
    library, hint = url.partition(":")[0], "start its scheduler and workers"
    executor: Callable[[], Executor]
    try:  # few need one of them
        if library == "dask":
            from huai_program.engine.dask_engine import DaskExecutor

            executor = partial(DaskExecutor, match["address"])
        else:
            from huai_program.engine.mpi_engine import MpiExecutor

            executor = MpiExecutor
            hint = "start this by mpiexec -n 9 python -m huai_server.mpi, or huai_client.mpi"
    except ModuleNotFoundError as error:
        raise EngineError(
            f"{url}: {error.name} is not installed",
            f"pip install 'huai[{library}]'",
            ExitCode.REQUIREMENT,
        ) from error

    def connect() -> Executor:
        try:
            return executor()
        except OSError as error:
            raise EngineError(f"{url}: {error}", hint) from error

    return connect


@contextmanager
def running(
    start: Callable[[], Executor],
    deadline: float,
    on_tasks: Callable[[int, int], None] = lambda _done, _all: None,
    on_end: Callable[[Task], None] = lambda _task: None,
) -> Iterator[Callable[[list[Task]], None]]:
    """Yield a function that runs tasks on an engine, and waits until they are done or have failed.

    `on_tasks` is called with the number of tasks that have ended, and of all; `on_end` with each
    that ends.
    The engine is started with the first tasks.  After `deadline` seconds without a sign of life a
    task is run again, once.  The function raises `EngineError` if the engine cannot be used, or for
    any error of a task but a `TaskError`.
    """
    run = _Run(start, deadline, on_tasks, on_end)
    try:
        yield run.finish
    finally:
        run.close()


class _Run:
    """Runs of tasks on an engine; `close` ends it."""

    def __init__(
        self,
        start: Callable[[], Executor],
        deadline: float,
        on_tasks: Callable[[int, int], None],
        on_end: Callable[[Task], None],
    ) -> None:
        self._start = start
        self._deadline = deadline
        self._on_tasks = on_tasks
        self._on_end = on_end
        self._pending: dict[str, Task] = {}
        self._done: SimpleQueue[tuple[str, Future[str]]] = SimpleQueue()
        self._copies: dict[str, int] = {}
        self._signs: dict[str, tuple[float, float]] = {}
        """The last sign of life of begun tasks, and when it was seen."""
        self._alone: dict[str, Future[str] | None] = {}
        """Tasks one of which may have killed its process, with the copy that counts from then on.

        They run one at a time, last: they have None until then.
        """
        self._waited: set[str] = set()
        """Tasks that were submitted again before they began."""
        self._starts = 0
        self._fell_silent = False
        """True after a task that had begun fell silent."""
        self._last_sign = 0.0
        """The time of the last sign of life of any task."""
        self._engine: Executor | None = None

    def finish(self, tasks: list[Task]) -> None:
        """Submit tasks, and wait until each has a record or failed; raises `EngineError`.

        Their keys must be new.
        """
        if tasks and self._engine is None:
            self._engine = self._start()
        self._pending = {task.key: task for task in tasks}
        self._copies, self._starts = dict.fromkeys(self._pending, 0), 0
        self._last_sign = time.monotonic()
        for key in list(self._pending):
            self._submit(key)
        while self._pending:
            self._on_tasks(len(tasks) - len(self._pending), len(tasks))
            try:
                key, future = self._done.get(timeout=_POLL)
            except Empty:
                self._look()
                continue
            self._last_sign = time.monotonic()
            self._settle(key, future)

    def close(self) -> None:
        """End the engine; processes of this machine are killed, as one may be stopped."""
        pool = isinstance(self._engine, ProcessPoolExecutor)
        if self._engine and not pool:
            self._engine.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.kill()
        if self._engine and pool:
            self._engine.shutdown()  # it warns of semaphores if the program ends before

    def _submit(self, key: str) -> "Future[str]":
        """Start a task, on another engine if the present one is broken; return its future.

        Raises `EngineError` if engines break again and again.
        """
        assert self._engine is not None  # noqa: S101 - `finish` starts it
        task = self._pending[key]
        self._signs.pop(key, None)
        self._place(key).unlink(missing_ok=True)  # it may wait longer than the deadline
        arguments = task.work, task.text, task.title, __version__
        options: dict[str, Any] = {"resources": {task.label: 1}} if task.label else {}
        try:
            future = self._engine.submit(run_task, *arguments, **options)
        except BrokenExecutor:
            self._starts += 1
            if self._starts > _COPIES * len(self._copies):  # then some end before they begin
                raise EngineError(
                    "the processes of the engine end at once",
                    "look for their last words above, and into the log of the kernel",
                ) from None
            self._engine = self._start()
            future = self._engine.submit(run_task, *arguments, **options)
        future.add_done_callback(lambda future: self._done.put((key, future)))
        return future

    def _settle(self, key: str, future: "Future[str]") -> None:
        """Finish a task that has ended; submit it again if it failed for the first time.

        Raises `EngineError` for a failure that other tasks would have too.
        """
        task = self._pending.get(key)
        if task is None:  # another copy was first
            return
        if future.cancelled():
            raise EngineError(
                "the engine dropped its tasks: its scheduler is gone",
                "start it, and run this again",
            )
        failure = future.exception()
        if failure is None:
            answer = msgspec.json.decode(future.result(), type=_Failure)
            if answer.code:
                raise EngineError(answer.message, answer.hint, answer.code)
            if not answer.message or task.record.exists():
                self._end(key)
                return
        elif not isinstance(failure, BrokenExecutor):
            raise EngineError(
                f"a process of the engine cannot run huai: {failure!r}",
                f"install huai {__version__} on all nodes, and look into the log of that process",
                ExitCode.REQUIREMENT,
            )
        if self._alone.get(key, future) is not future:  # one end of a process ended both copies
            return
        has_begun = self._sign(key) is not None
        self._copies[key] += has_begun
        if self._copies[key] >= _COPIES:
            self._end(key)
        elif failure is not None and has_begun:
            self._alone[key] = None
        else:
            self._submit(key)

    def _end(self, key: str) -> None:
        """End a task, with or without a record."""
        self._on_end(self._pending.pop(key))

    def _look(self) -> None:
        """Submit a task again after a deadline without a sign of life; the second time, end it.

        One that has not begun may wait behind a stopped process: it is submitted again when no task
        has given a sign of life for that time, and has failed if no worker has its label then.
        Raises `EngineError` after `_SILENCE` such times if a task that had begun fell silent:
        others may wait for a process.
        """
        now = time.monotonic()
        running = [key for key in self._pending if self._alone.get(key, self) is not None]
        if not running:
            running = [next(iter(self._pending))]
            self._alone[running[0]] = self._submit(running[0])
        is_silent = now - self._last_sign > self._deadline
        if is_silent:
            running = self._end_workerless(running)
        for key in running:
            sign = self._sign(key)
            if sign is None:
                if is_silent and key not in self._waited:
                    self._waited.add(key)
                    self._submit(key)
            elif key not in self._signs or self._signs[key][0] != sign:
                self._signs[key] = sign, now
                self._last_sign = now
            elif now - self._signs[key][1] > self._deadline:
                self._fell_silent = True
                self._copies[key] += 1
                if self._copies[key] >= _COPIES:
                    self._end(key)
                else:
                    self._submit(key)
        if self._fell_silent and now - self._last_sign > _SILENCE * self._deadline:
            raise EngineError(
                "no process of the engine gives a sign of life",
                "look for stopped processes and storage that hangs, and run this again",
            )

    def _end_workerless(self, keys: list[str]) -> list[str]:
        """End the tasks with a label that no worker has; return the others."""
        labels = {label for key in keys if (label := self._pending[key].label)}
        if labels:  # the engine is Dask
            missing = cast("DaskExecutor", self._engine).missing(labels)
            for key in keys:
                if self._pending[key].label in missing:
                    self._end(key)
        return [key for key in keys if key in self._pending]

    def _sign(self, key: str) -> float | None:
        """Return the time of a task's last sign of life, or None if it has not begun."""
        try:
            return self._place(key).stat().st_mtime
        except OSError:
            return None

    def _place(self, key: str) -> Path:
        """Return the file that a process touches."""
        return self._pending[key].folder / (key + BEGAN)


def run_task(work: Callable[[str], object], text: str, title: str, version: str) -> str:
    """Do the work of a `Task`; return the `_Failure` in JSON, empty without an error.

    Runs in a process of the engine.  `version` is that of huai where the task is from.
    """
    failure = _Failure()
    try:
        check_version(version)
        work(text)
    except HuaiError as error:
        code = ExitCode.OK if isinstance(error, TaskError) else error.exit_code
        where = f"{socket.gethostname()}: {title}: {error.message}"
        failure = _Failure(where, error.hint, code)
    except OSError as error:
        where = f"{socket.gethostname()}: {title}: {error}"
        failure = _Failure(where, "look at the disks of that machine", ExitCode.FILE_IO)
    return msgspec.json.encode(failure).decode()


def _end_with_parent() -> None:
    """End this process when its parent ends, even if that was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101 - this is the initializer of a pool

    def watch() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    Thread(target=watch, daemon=True).start()
