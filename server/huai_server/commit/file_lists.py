"""Lists of files whose content is read: by the command itself, or by the processes of an engine.

Results are data: a record for each list, in a folder that all processes see.
"""

import math
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from huai_native._native import Pace
from huai_program.durations import seconds
from huai_program.engine.signs import BEGAN, RECORD, alive
from huai_program.locking import locked
from huai_program.priority import idle_disk
from huai_program.record_file import RecordFile
from huai_schema.paths import is_within
from huai_server.commit.read_limits import ReadLimits
from huai_server.commit.shard_record import labels_at, shards_folder
from huai_server.config.load import load
from huai_server.config.tables import Module
from huai_server.state.errors import storage_errors
from huai_server.state.paths import ModulePlaces, module_places
from huai_server.store.repository import metadata_errors

NO_RESULT = "the processes that should read it have failed, or no worker has its label"
"""The reason for the files of a list that an engine could not read."""
_AT_ONCE = 256
"""The lists that an engine has at a time."""

_Files = TypeVar("_Files")
_Result = TypeVar("_Result")
Read: TypeAlias = Callable[[Iterable[_Files]], Iterator[tuple[_Files, _Result | None]]]
"""Reads lists in their order while there is time; the result of a failed one is missing."""


class ListTask(msgspec.Struct, Generic[_Files], frozen=True):
    """The arguments of a process that reads a list."""

    root: str
    """The state root."""
    name: str
    folder: str
    key: str
    """The name of its files in `folder`, without suffix."""
    files: _Files
    rate: int
    until: float | None
    """The time at which it stops, if there is one."""


class Reader(NamedTuple, Generic[_Files, _Result]):
    """The way in which one command reads a list."""

    read: Callable[[Module, ModulePlaces, Pace, _Files], _Result]
    kind: type[ListTask[_Files]]
    record: RecordFile[_Result]
    work: Callable[[str], None]
    """`run` with this reader, which processes can import."""
    split: Callable[[_Files, Callable[[bytes], str]], Iterable[tuple[str, _Files]]]
    """Splits a list into parts with one label each."""

    def run(self, text: str) -> None:
        """Read the list of a `ListTask` in JSON, and write the record; for a process of an engine.

        Does nothing if it has a record.  Raises any `HuaiError` of the configuration or of reading.
        """
        task = msgspec.json.decode(text, type=self.kind)
        root, folder = Path(task.root), Path(task.folder)
        if (folder / (task.key + RECORD)).exists():  # another copy was faster
            return
        module, places = load(root).committed_module(task.name), module_places(root, task.name)
        left = None if task.until is None else max(0.0, task.until - time.time())
        pace = ReadLimits(left, task.rate).pace()
        with storage_errors(folder), metadata_errors(task.name), alive(folder / (task.key + BEGAN)):
            with idle_disk():
                result = self.read(module, places, pace, task.files)
            self.record.save(folder / (task.key + RECORD), result)


@contextmanager
def opened_reader(
    which: tuple[str, Module, ModulePlaces],
    limits: ReadLimits,
    pace: Pace,
    reader: Reader[_Files, _Result],
    engine: str,
) -> Iterator[Read[_Files, _Result]]:
    """Yield a function that reads lists here, or by the engine at the URL `engine`, if any.

    Without one the engine of the configuration is used, if any.  The function raises any error of
    `reader.read`, or `EngineError`.  Each process of an engine has the rate of `limits`.  Waits for
    another run of the same command by an engine.
    """
    name, module, places = which
    url = engine or module.engine.url
    if not url:
        yield partial(_read_here, partial(reader.read, module, places, pace), pace)
        return
    # This loads multiprocessing.
    from huai_program.engine.tasks import Task, open_engine, running, task_keys

    labels = labels_at(url, module.engine)

    def label_of(path: bytes) -> str:
        """Return the label of a directory that `path` is in; empty if none has one."""
        return next((labels[top] for top in labels if is_within(path, top)), "")

    start, keys = open_engine(url), task_keys()
    until = None if limits.seconds is None else time.time() + limits.seconds
    folder = shards_folder(module, places) / reader.work.__name__

    def task(label: str, files: _Files) -> Task:
        key = next(keys)
        values = (str(places.root), name, str(folder), key, files, limits.rate, until)
        text = msgspec.json.encode(ListTask(*values)).decode()
        return Task(folder, key, f"list {key}", reader.work, text, label or None)

    def read(lists: Iterable[_Files]) -> Iterator[tuple[_Files, _Result | None]]:
        parts: Iterator[tuple[str, _Files]] = (("", files) for files in lists)
        if labels:
            parts = chain.from_iterable(reader.split(files, label_of) for _, files in parts)
        while not pace.is_over() and (some := list(islice(parts, _AT_ONCE))):
            tasks = [task(*part) for part in some]
            run(tasks)
            for (_, files), done in zip(some, tasks, strict=True):
                yield files, reader.record.load(done.record)
                done.record.unlink(missing_ok=True)

    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_suffix(".lock"), wait=math.inf):
            shutil.rmtree(folder)  # what a killed run left
            folder.mkdir()
            with running(start, seconds(module.engine.deadline)) as run:
                yield read
            shutil.rmtree(folder, ignore_errors=True)


def _read_here(
    read: Callable[[_Files], _Result], pace: Pace, lists: Iterable[_Files]
) -> Iterator[tuple[_Files, _Result | None]]:
    """Yield lists with their results, until the `pace` is over."""
    for files in lists:
        if pace.is_over():
            return
        with idle_disk():
            result = read(files)
        yield files, result
