"""Engines that fail in other ways than a scan does: the run ends, and says why."""

from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from huai_schema.errors import ExitCode
from huai_server.commit import engine
from huai_server.commit.shard_record import BEGAN, RECORD, shard_key
from huai_server.commit.shard_scan import Task

if TYPE_CHECKING:
    from collections.abc import Callable


class KilledWorker(Exception):  # noqa: N818 - Dask's name
    """As Dask's, for a task whose workers ended."""


class FakeExecutor(Executor):
    """An engine that answers each task by `settle`."""

    def __init__(self, settle: "Callable[[Future[Any], str], object]") -> None:
        self.texts: list[str] = []
        self._settle = settle
        self._broken = False

    def submit(self, function: Any, /, *args: Any, **_: Any) -> "Future[Any]":
        assert function is engine.run_task
        if self._broken:
            raise BrokenExecutor
        self.texts.append(args[0])
        future: Future[Any] = Future()
        self._settle(future, args[0])
        self._broken = (
            future.done()
            and not future.cancelled()
            and isinstance(future.exception(), BrokenExecutor)
        )
        return future


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(str(tmp_path), "m", b"a", None, str(tmp_path))


def failing(error: Exception) -> "Callable[[Future[Any], str], object]":
    return lambda future, _: future.set_exception(error)


def dropped(future: "Future[Any]", _: str) -> None:
    future.cancel()
    future.set_running_or_notify_cancel()


@pytest.mark.parametrize(
    ("settle", "code", "words"),
    [
        (failing(ModuleNotFoundError("huai_server")), ExitCode.REQUIREMENT, "install huai"),
        (failing(BrokenExecutor()), ExitCode.NETWORK, "end at once"),
        (dropped, ExitCode.NETWORK, "its scheduler is gone"),
    ],
)
def test_a_run_ends_if_no_task_can_run(
    task: Task, settle: "Callable[[Future[Any], str], object]", code: int, words: str
) -> None:
    with pytest.raises(engine.EngineError) as failed:
        engine.run_tasks(lambda: FakeExecutor(settle), [task], 60)
    assert failed.value.exit_code == code
    assert words in f"{failed.value.message} {failed.value.hint}"


def test_a_worker_of_another_version_refuses_the_task(task: Task) -> None:
    def settle(future: "Future[Any]", text: str) -> None:
        future.set_result(engine.run_task(text))

    with pytest.raises(engine.EngineError) as failed:
        engine.run_tasks(lambda: FakeExecutor(settle), [replace(task, version="0")], 60)
    assert failed.value.exit_code == ExitCode.REQUIREMENT


def test_a_shard_that_kills_its_workers_twice_has_failed(task: Task) -> None:
    def settle(future: "Future[Any]", _: str) -> None:
        (Path(task.folder) / (shard_key(task.path) + BEGAN)).touch()
        future.set_exception(KilledWorker())

    executor = FakeExecutor(settle)
    engine.run_tasks(lambda: executor, [task], 60)
    assert len(executor.texts) == 2


def test_a_sign_of_an_earlier_process_is_not_silence(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task waits for a worker longer than the deadline."""
    monkeypatch.setattr(engine, "_POLL", 0.01)
    key = Path(task.folder) / shard_key(task.path)
    key.with_suffix(BEGAN).touch()

    def finish(future: "Future[Any]") -> None:
        key.with_suffix(RECORD).touch()
        future.set_result("{}")

    def settle(future: "Future[Any]", _: str) -> None:
        Timer(0.3, finish, [future]).start()

    executor = FakeExecutor(settle)
    engine.run_tasks(lambda: executor, [task], -1)
    assert len(executor.texts) == 1
