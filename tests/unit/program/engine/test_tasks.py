"""Engines that fail in other ways than a scan does: the run ends, and says why."""

from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from huai_program.engine import tasks
from huai_program.engine.signs import BEGAN, EngineError
from huai_program.engine.tasks import Task
from huai_schema import __version__
from huai_schema.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

Settle: TypeAlias = "Callable[[Future[Any], tuple[Any, ...]], object]"


class FakeExecutor(Executor):
    """An engine that answers each task by `settle`."""

    def __init__(self, settle: Settle) -> None:
        self.tasks: list[tuple[Any, ...]] = []
        self._settle = settle
        self._broken = False

    def missing(self, labels: set[str]) -> set[str]:
        return labels - {"present"}

    def submit(self, function: Any, /, *args: Any, **_: Any) -> "Future[Any]":
        assert function is tasks.run_task
        if self._broken:
            raise BrokenExecutor
        self.tasks.append(args)
        future: Future[Any] = Future()
        self._settle(future, args)
        self._broken = (
            future.done()
            and not future.cancelled()
            and isinstance(future.exception(), BrokenExecutor)
        )
        return future


def work(_: str) -> None:
    """A process does nothing."""


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(tmp_path, "a", "a", work, "")


def run_task(settle: Settle, task: Task, deadline: float = 60) -> list[FakeExecutor]:
    """Run a task; return the engines that were started."""
    started: list[FakeExecutor] = []

    def start() -> FakeExecutor:
        started.append(FakeExecutor(settle))
        return started[-1]

    with tasks.running(start, deadline) as run:
        run([task])
    return started


def failing(error: Exception) -> Settle:
    return lambda future, _: future.set_exception(error)


def dropped(future: "Future[Any]", _: object) -> None:
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
def test_a_run_ends_if_no_task_can_run(task: Task, settle: Settle, code: int, words: str) -> None:
    with pytest.raises(EngineError) as failed:
        run_task(settle, task)
    assert failed.value.exit_code == code
    assert words in f"{failed.value.message} {failed.value.hint}"


def test_a_worker_of_another_version_refuses_the_task(task: Task) -> None:
    def settle(future: "Future[Any]", call: tuple[Any, ...]) -> None:
        assert call[-1] == __version__
        future.set_result(tasks.run_task(call[0], call[1], call[2], "0"))

    with pytest.raises(EngineError) as failed:
        run_task(settle, task)
    assert failed.value.exit_code == ExitCode.REQUIREMENT


def test_a_task_that_kills_its_workers_twice_has_failed(task: Task) -> None:
    def settle(future: "Future[Any]", _: object) -> None:
        (task.folder / (task.key + BEGAN)).touch()
        future.set_exception(BrokenExecutor())

    started = run_task(settle, task)
    assert sum(len(each.tasks) for each in started) == 2


def test_a_sign_of_an_earlier_process_is_not_silence(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task waits for a worker longer than the deadline."""
    monkeypatch.setattr(tasks, "_POLL", 0.01)
    (task.folder / (task.key + BEGAN)).touch()

    def finish(future: "Future[Any]") -> None:
        task.record.touch()
        future.set_result("{}")

    def settle(future: "Future[Any]", _: object) -> None:
        timers.append(Timer(0.3, finish, [future]))
        timers[-1].start()

    timers: list[Timer] = []
    (executor,) = run_task(settle, task, -1)
    assert task.record.exists()
    assert len(executor.tasks) == 2  # the first may wait behind a stopped process
    for timer in timers:
        timer.join()


def test_one_kill_of_a_task_with_two_copies_counts_once(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both tasks are submitted twice before they begin; one copy of `task` is not killed."""
    monkeypatch.setattr(tasks, "_POLL", 0.01)
    task_pair = [task, task._replace(key="b")]
    futures: list[Future[Any]] = []

    def settle(future: "Future[Any]", _: object) -> None:
        futures.append(future)
        if len(futures) == 4:
            for key in ("a", "b"):
                (task.folder / (key + BEGAN)).touch()
            for killed in (futures[1], futures[0], future):
                killed.set_exception(BrokenExecutor())
        if len(futures) in {4, 5}:
            finished = len(futures) - 4
            task_pair[finished].record.touch()
            futures[2 + 2 * finished].set_result("{}")

    with tasks.running(lambda: FakeExecutor(settle), -1) as run:
        run(task_pair)
    assert all(task.record.exists() for task in task_pair)
    assert len(futures) == 5


def test_a_copy_behind_a_stopped_process_is_not_waited_for(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first copy never begins, the second one is killed."""
    monkeypatch.setattr(tasks, "_POLL", 0.01)
    futures: list[Future[Any]] = []

    def settle(future: "Future[Any]", _: object) -> None:
        futures.append(future)
        if len(futures) == 2:
            (task.folder / (task.key + BEGAN)).touch()
            future.set_exception(BrokenExecutor())
        elif len(futures) == 3:
            task.record.touch()
            future.set_result("{}")

    run_task(settle, task, 0.1)
    assert task.record.exists()


def test_a_task_whose_label_no_worker_has_fails_alone(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_POLL", 0.01)
    labelled = [task._replace(key=label, label=label) for label in ("missing", "present")]
    futures: list[Future[Any]] = []

    def settle(future: "Future[Any]", _: object) -> None:
        futures.append(future)
        if len(futures) == 3:  # the other one was submitted again
            labelled[1].record.touch()
            future.set_result("{}")

    with tasks.running(lambda: FakeExecutor(settle), 0.1) as run:
        run(labelled)
    assert [each.record.exists() for each in labelled] == [False, True]


def test_a_run_ends_if_all_processes_are_silent(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_POLL", 0.01)
    copies: list[object] = []

    def settle(future: "Future[Any]", _: object) -> None:
        copies.append(future)
        if len(copies) == 1:  # the second one waits behind the first
            (task.folder / (task.key + BEGAN)).touch()

    with pytest.raises(EngineError, match="no process of the engine gives a sign of life"):
        run_task(settle, task, 0.1)


def test_an_engine_is_started_with_the_first_task() -> None:
    def start() -> Executor:
        raise AssertionError("nothing is to be done")

    with tasks.running(start, 60) as run:
        run([])
