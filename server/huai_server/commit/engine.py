"""Runs scans of shards on an engine: any `concurrent.futures.Executor`.

Only `submit`, `add_done_callback` and `exception` are used, which all engines have.  A task and its
answer are text.  A shard is done when its record is there, so nothing is lost with a process.

A process that is killed, or gives no sign of life for the deadline, is replaced once.  A shard that
fails twice has no result.
"""

import multiprocessing
import os
import re
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

import msgspec

from huai_schema.errors import ExitCode, HuaiError
from huai_server.commit.shard_record import BEGAN, RECORD, shard_key
from huai_server.commit.shard_scan import Task, scan_shard
from huai_server.config.tables import ENGINE
from huai_server.state.errors import StorageError

if TYPE_CHECKING:
    from concurrent.futures import Future

_POLL = 0.5
"""The longest time between two looks at signs of life, in seconds."""
_COPIES = 2


class EngineError(HuaiError):
    """The engine cannot be used."""

    exit_code = ExitCode.USAGE


class _TaskError(msgspec.Struct, frozen=True):
    """An error of a task; empty if there was none."""

    message: str = ""
    hint: str = ""
    is_fatal: bool = False
    """True if no other shard would fare better: the run ends."""


def open_engine(url: str) -> Callable[[], Executor]:
    """Return the function that starts the engine at `url`; raises `EngineError` for another URL."""
    local = re.fullmatch(ENGINE, url)
    if local is None:
        raise EngineError(
            f"{url}: no such engine", hint="give local://N for N processes of this machine"
        )
    context = multiprocessing.get_context("spawn")
    return lambda: ProcessPoolExecutor(
        int(local[1]), mp_context=context, initializer=_end_with_parent
    )


def run_tasks(start: Callable[[], Executor], tasks: list[Task], deadline: float) -> None:
    """Run tasks on an engine; those without a record afterwards have failed."""
    run = _Run(start, tasks, deadline)
    try:
        run.finish()
    finally:
        run.close()


class _Run:
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
        self._running = 0
        self._engine = start()

    def finish(self) -> None:
        """Submit all tasks, and wait for their records."""
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
        self._engine.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.kill()

    def _submit(self, path: bytes) -> None:
        text = msgspec.json.encode(self._pending[path]).decode()
        try:
            future = self._engine.submit(run_task, text)
        except BrokenExecutor:
            self._engine = self._start()
            future = self._engine.submit(run_task, text)
        self._running += 1
        future.add_done_callback(lambda future: self._done.put((path, future)))

    def _settle(self, path: bytes, future: "Future[str]") -> None:
        task = self._pending.get(path)
        if task is None:  # another copy was first
            return
        failure = future.exception()
        if failure is None:
            answer = msgspec.json.decode(future.result(), type=_TaskError)
            if answer.is_fatal:
                raise StorageError(answer.message, hint=answer.hint)
            if not answer.message or (Path(task.folder) / (shard_key(path) + RECORD)).exists():
                del self._pending[path]
                return
        has_begun = self._sign(path) is not None
        self._copies[path] += has_begun
        self._signs.pop(path, None)
        if self._copies[path] >= _COPIES:
            del self._pending[path]
        elif isinstance(failure, BrokenExecutor) and has_begun:
            self._alone.append(path)
        else:
            self._submit(path)

    def _look(self) -> None:
        """Submit a copy of each shard without a sign of life; without one of the copy it failed."""
        now = time.monotonic()
        for path in list(self._pending):
            sign = self._sign(path)
            if sign is None:
                continue
            if path not in self._signs or self._signs[path][0] != sign:
                self._signs[path] = sign, now
            elif now - self._signs[path][1] > self._deadline and path not in self._alone:
                self._copies[path] += 1
                self._signs[path] = sign, now
                if self._copies[path] >= _COPIES:
                    del self._pending[path]
                else:
                    self._submit(path)

    def _sign(self, path: bytes) -> float | None:
        try:
            sign = Path(self._pending[path].folder) / (shard_key(path) + BEGAN)
            return sign.stat().st_mtime
        except OSError:
            return None


def run_task(text: str) -> str:
    """Scan the shard of an encoded task; return the encoded `_TaskError`."""
    task = msgspec.json.decode(text, type=Task)
    answer = _TaskError()
    try:
        scan_shard(task)
    except HuaiError as error:
        answer = _TaskError(error.message, error.hint, isinstance(error, StorageError))
    return msgspec.json.encode(answer).decode()


def _end_with_parent() -> None:
    """End this process when its parent ends, even if that was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101 - this is the initializer of a pool

    def watch() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    Thread(target=watch, daemon=True).start()
