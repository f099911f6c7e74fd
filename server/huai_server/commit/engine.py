"""Runs scans of shards on an engine: any `concurrent.futures.Executor`.

Only `submit`, `add_done_callback` and `exception` are used, which all engines have.  A task and its
answer are text.  A shard is done when its record is there, so nothing is lost with a process.

A process that is killed, or gives no sign of life for the deadline, is replaced once.  A shard that
fails twice has no result.
"""

import multiprocessing
import os
import re
import socket
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

import msgspec

from huai_schema import __version__
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import show
from huai_server.commit.shard_record import BEGAN, RECORD, check_version, shard_key
from huai_server.commit.shard_scan import Task, scan_shard
from huai_server.config.tables import ENGINE
from huai_server.scan.types import ScanError

if TYPE_CHECKING:
    from concurrent.futures import Future

_POLL = 0.5
"""The longest time between two looks at signs of life, in seconds."""
_COPIES = 2
_KILLED = "KilledWorker"
"""The name of Dask's error for a task whose workers ended."""


class EngineError(HuaiError):
    """The engine cannot be used, or a shard failed in a way in which all others would fail."""

    def __init__(self, message: str, hint: str, code: ExitCode = ExitCode.NETWORK) -> None:
        """`code` is the exit code of the commit."""
        super().__init__(message, hint=hint)
        self.exit_code = code  # type: ignore[misc] # that of the shard


class _Failure(msgspec.Struct, frozen=True):
    """The error of a task; empty if there was none."""

    message: str = ""
    hint: str = ""
    code: ExitCode = ExitCode.OK
    """The exit code of the commit; 0 if other shards may fare better."""


def open_engine(url: str) -> Callable[[], Executor]:
    """Return the function that starts the engine at `url`, and raises `EngineError` if it cannot.

    Raises `EngineError` for a URL of another form, or if Dask is needed and not installed.
    """
    match = re.fullmatch(ENGINE, url)
    if match is None:
        raise EngineError(
            f"{url}: no such engine",
            "give local://N for N processes of this machine, or dask://HOST:PORT",
            ExitCode.USAGE,
        )
    if match["processes"]:
        context, count = multiprocessing.get_context("spawn"), int(match["processes"])
        return lambda: ProcessPoolExecutor(count, context, initializer=_end_with_parent)
    try:
        from huai_server.commit.dask_engine import DaskExecutor  # few need it
    except ModuleNotFoundError as error:
        raise EngineError(
            f"{url}: {error.name} is not installed, but Dask needs it",
            "pip install 'huai[dask]'",
            ExitCode.REQUIREMENT,
        ) from error

    def connect() -> Executor:
        try:
            return DaskExecutor(match["address"])
        except OSError as error:
            raise EngineError(f"{url}: {error}", "start its scheduler and workers") from error

    return connect


def run_tasks(start: Callable[[], Executor], tasks: list[Task], deadline: float) -> None:
    """Run tasks on an engine, and wait for them; those without a record afterwards have failed.

    After `deadline` seconds without a sign of life a task is run again, once.  Raises `EngineError`
    if the engine cannot be used, or for any error of a task but a `ScanError`.
    """
    run = _Run(start, tasks, deadline)
    try:
        run.finish()
    finally:
        run.close()


class _Run:
    """A run of tasks on an engine, which is started here; `close` ends it."""

    def __init__(self, start: Callable[[], Executor], tasks: list[Task], deadline: float) -> None:
        self._start = start
        self._deadline = deadline
        self._pending = {task.path: task for task in tasks}
        self._done: SimpleQueue[tuple[bytes, Future[str]]] = SimpleQueue()
        self._copies = dict.fromkeys(self._pending, 0)
        self._signs: dict[bytes, tuple[float, float]] = {}
        """The last sign of life of begun shards, and when it was seen."""
        self._alone: list[bytes] = []
        """Shards one of which may have killed its process: they run one at a time, last."""
        self._running = self._starts = 0
        self._engine = start()

    def finish(self) -> None:
        """Submit all tasks, and wait until each has a record or failed; raises `EngineError`."""
        for path in self._pending:
            self._submit(path)
        while self._pending:
            if not self._running and self._alone:
                self._submit(self._alone.pop())
            try:
                path, future = self._done.get(timeout=_POLL)
            except Empty:
                self._look()
                continue
            self._running -= 1
            self._settle(path, future)

    def close(self) -> None:
        """End the engine; processes of this machine are killed, as one may be stopped."""
        for process in multiprocessing.active_children():
            process.kill()
        self._engine.shutdown(wait=False, cancel_futures=True)

    def _submit(self, path: bytes) -> None:
        """Start the scan of the shard at `path`, on another engine if the present one is broken.

        Raises `EngineError` if engines break again and again.
        """
        text = msgspec.json.encode(self._pending[path]).decode()
        self._signs.pop(path, None)
        self._place(path).unlink(missing_ok=True)  # it may wait longer than the deadline
        try:
            future = self._engine.submit(run_task, text)
        except BrokenExecutor:
            self._starts += 1
            if self._starts > _COPIES * len(self._copies):  # then some end before they begin
                raise EngineError(
                    "the processes of the engine end at once",
                    "look for their last words above, and into the log of the kernel",
                ) from None
            self._engine = self._start()
            future = self._engine.submit(run_task, text)
        self._running += 1
        future.add_done_callback(lambda future: self._done.put((path, future)))

    def _settle(self, path: bytes, future: "Future[str]") -> None:
        """Finish a shard whose task has ended; submit it again if it failed for the first time.

        Raises `EngineError` for a failure that other shards would have too.
        """
        task = self._pending.get(path)
        if task is None:  # another copy was first
            return
        if future.cancelled():
            raise EngineError(
                "the engine dropped its tasks: its scheduler is gone",
                "commit again: finished shards are not scanned again",
            )
        failure = future.exception()
        if failure is None:
            answer = msgspec.json.decode(future.result(), type=_Failure)
            if answer.code:
                raise EngineError(answer.message, answer.hint, answer.code)
            if not answer.message or (Path(task.folder) / (shard_key(path) + RECORD)).exists():
                del self._pending[path]
                return
        elif not isinstance(failure, BrokenExecutor) and type(failure).__name__ != _KILLED:
            raise EngineError(
                f"a process of the engine cannot run huai: {failure!r}",
                f"install huai {__version__} on all nodes, and look into the log of that process",
                ExitCode.REQUIREMENT,
            )
        has_begun = self._sign(path) is not None
        self._copies[path] += has_begun
        if self._copies[path] >= _COPIES:
            del self._pending[path]
        elif failure is not None and has_begun:
            self._alone.append(path)
        else:
            self._submit(path)

    def _look(self) -> None:
        """Submit a shard again after a deadline without a sign of life; the second time, end it."""
        now = time.monotonic()
        for path in list(self._pending):
            sign = self._sign(path)
            if sign is None:
                continue
            if path not in self._signs or self._signs[path][0] != sign:
                self._signs[path] = sign, now
            elif now - self._signs[path][1] > self._deadline and path not in self._alone:
                self._copies[path] += 1
                if self._copies[path] >= _COPIES:
                    del self._pending[path]
                else:
                    self._submit(path)

    def _sign(self, path: bytes) -> float | None:
        """Return the time of a shard's last sign of life, or None if its scan has not begun."""
        try:
            return self._place(path).stat().st_mtime
        except OSError:
            return None

    def _place(self, path: bytes) -> Path:
        """Return the file that a process touches."""
        return Path(self._pending[path].folder) / (shard_key(path) + BEGAN)


def run_task(text: str) -> str:
    """Scan the shard of a `Task` in JSON; return the `_Failure` in JSON, empty without an error.

    Runs in a process of the engine.
    """
    task, failure = msgspec.json.decode(text, type=Task), _Failure()
    try:
        check_version(task.version)
        scan_shard(task)
    except HuaiError as error:
        code = ExitCode.OK if isinstance(error, ScanError) else error.exit_code
        where = f"{socket.gethostname()}: {show(task.path)}: {error.message}"
        failure = _Failure(where, error.hint, code)
    return msgspec.json.encode(failure).decode()


def _end_with_parent() -> None:
    """End this process when its parent ends, even if that was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101 - this is the initializer of a pool

    def watch() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    Thread(target=watch, daemon=True).start()
