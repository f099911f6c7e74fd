"""Parts that the processes of an engine compare, on this machine or on others.

A process sees the state root and the tree, takes no lock and changes nothing.  Results are data: a
record for each task, with what differs, and with the tree that it was compared with.
Rule: a process finishes each part that it begins; the parts that it leaves are still due.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import msgspec

from huai_client.config.load import load
from huai_client.config.mirror import Mirror
from huai_client.diff.candidate import Difference, FoundDifference
from huai_client.run.options import Deadline
from huai_client.verify.check import VerifyTotals
from huai_client.verify.expected import Stamp
from huai_client.verify.jobs import PartJob
from huai_client.verify.queue import VerifyRequest
from huai_client.verify.segments import Comparison, Segment
from huai_program.engine.signs import BEGAN, RECORD, alive
from huai_program.engine.tasks import Task, open_engine, running, task_keys
from huai_program.record_file import RecordFile
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import RelPath, show

Position: TypeAlias = tuple[RelPath, bytes]
"""A part, and the position in it behind which to begin."""
MOST = 1 << 15
"""The number of parts to compare at a time."""
_TASKS, _PARTS = 128, 256
"""The number of tasks for few parts, for as many processes; the number of parts of a task."""
_SECONDS = 10.0
"""The time of a task: its process begins no part after it."""
_DEADLINE = 120.0
"""Seconds of silence after which another process does a task."""


class PartsTask(msgspec.Struct, frozen=True):
    """The arguments of a process."""

    root: str
    """The state root."""
    name: str
    folder: str
    key: str
    """The name of its files in `folder`, without suffix."""
    content: bool
    until: float | None
    """The time after which it begins no part, if there is one."""
    parts: list[Position]


_Row: TypeAlias = tuple[Difference, File | None, Directory | None, Symlink | None]
"""A difference with the expected entry: JSON needs a place for each type."""


class _Result(msgspec.Struct, frozen=True):
    """The parts that a process finished."""

    segments: list[tuple[RelPath, list[_Row], tuple[bytes | None, Stamp, bytes]]]
    """By part: what differs, and the other fields of a `Segment`."""
    tally: VerifyTotals


_RESULT = RecordFile(_Result, durable=False)


def compare_parts(text: str) -> None:
    """Compare parts, a `PartsTask` in JSON, and write the record; for a process of an engine.

    Does nothing if it has a record.
    """
    task = msgspec.json.decode(text, type=PartsTask)
    folder, result = Path(task.folder), _Result([], VerifyTotals())
    if (folder / (task.key + RECORD)).exists():  # another copy was faster
        return
    mirror = Mirror.of(Path(task.root), task.name, load(Path(task.root)).module(task.name))
    with (
        alive(folder / (task.key + BEGAN)),
        Comparison.opened(mirror, result.tally, content=task.content) as comparison,
    ):
        left = _SECONDS if task.until is None else min(_SECONDS, task.until - time.time())
        deadline = Deadline.after(left)
        for path, position in task.parts:
            if deadline.over:
                break
            for segment in comparison.segments(PartJob(path), position):
                rows = [*map(_row, segment.deviations)]
                result.segments.append((path, rows, segment[1:]))
        _RESULT.save(folder / (task.key + RECORD), result)


def _row(deviation: FoundDifference) -> _Row:
    """Return a difference as JSON can hold it."""
    difference, entry = deviation
    return (
        difference,
        entry if isinstance(entry, File) else None,
        entry if isinstance(entry, Directory) else None,
        entry if isinstance(entry, Symlink) else None,
    )


def _deviation(row: _Row) -> FoundDifference:
    difference, file, directory, symlink = row
    return FoundDifference(difference, file or directory or symlink)


@contextmanager
def started_engine(
    mirror: Mirror,
    request: VerifyRequest,
    on_result: Callable[[VerifyTotals, list[tuple[RelPath, Segment]]], None],
) -> Iterator[Callable[[list[Position]], list[RelPath]]]:
    """Yield a function that compares parts by the processes of an engine.

    It returns the parts whose own task failed twice.  `on_result` is called with the totals of each
    task, and its segments by part.  Raises `EngineError`, also for an error of a process that would
    have ended a comparison here.
    """
    start, folder, keys = open_engine(request.engine), mirror.paths.tasks, task_keys()
    until = time.time() + request.deadline.left if request.limited else None
    pending: dict[str, list[Position]] = {}
    failed: list[Position] = []

    def task(parts: list[Position]) -> Task:
        key = next(keys)
        pending[key] = parts
        values = str(mirror.root), mirror.name, str(folder), key, request.content, until, parts
        text = msgspec.json.encode(PartsTask(*values)).decode()
        return Task(folder, key, f"parts from {show(parts[0][0])}", compare_parts, text)

    def collect(task: Task) -> None:
        parts, result = pending.pop(task.key), _RESULT.load(task.record)
        if result is None:
            failed.extend(parts)
            return
        task.record.unlink()
        segments = [
            (path, Segment([*map(_deviation, rows)], *rest)) for path, rows, rest in result.segments
        ]
        on_result(result.tally, segments)

    def compare(parts: list[Position]) -> list[RelPath]:
        size = max(1, min(_PARTS, len(parts) // _TASKS))
        failed.clear()
        run([task(parts[at : at + size]) for at in range(0, len(parts), size)])
        if size > 1:  # one part may have ended the processes of all
            again, failed[:] = failed[:], []
            run([task([part]) for part in again])
        return [path for path, _ in failed]

    shutil.rmtree(folder, ignore_errors=True)  # what a killed run left
    folder.mkdir()
    with running(start, _DEADLINE, on_end=collect) as run:
        yield compare
    shutil.rmtree(folder, ignore_errors=True)
