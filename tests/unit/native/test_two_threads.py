"""Objects of the engine that two threads use at once."""

import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import pytest

from huai_client.diff.candidate import Candidate
from huai_client.diff.table import CandidateTable
from huai_native import _native
from huai_schema.entries import File
from huai_schema.paths import RelPath
from tests.support.two_threads import BOUND, OBJECTS

NEVER_WAITING = {
    *("Arrived", "BlockIndex", "BundleWriter", "ChangeList", "Entries", "Filter", "FoundDigests"),
    *("Blake3", "MissingObjects", "Pace", "PackWriter", "Plan", "PrivateKey", "PublishPatterns"),
    *("Renames", "Rows", "Scrub", "Tree", "TreeWatch"),
}
"""The classes whose methods call nothing of Python's while they hold the state of their object."""


def test_each_class_is_called_by_two_threads_or_never_waits_for_python() -> None:
    classes = {name for name, each in vars(_native).items() if isinstance(each, type)}
    assert classes == {*OBJECTS, "Candidates"} | NEVER_WAITING


@pytest.mark.parametrize("name", OBJECTS)
def test_no_call_waits_with_python_for_a_call_that_waits_for_python(
    name: str, tmp_path: Path
) -> None:
    """The methods run in a process, which ends although all of its threads may hang."""
    command = [sys.executable, "-m", "tests.support.two_threads", name, str(tmp_path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND, check=False)
    except subprocess.TimeoutExpired as hung:
        pytest.fail(f"a method of {name} hangs, the last of {hung.stdout!r}")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_table_in_work_refuses_every_other_call() -> None:
    """An empty table in its place would be an empty plan, and what it gets would be lost."""
    table = CandidateTable.of([])
    is_inside, is_released = Event(), Event()

    def candidates() -> object:
        is_inside.set()
        is_released.wait(BOUND)
        yield Candidate(RelPath(b"file"), None, File(RelPath(b"file"), 1, 1, 0o644))

    thread = Thread(target=table.engine.extend, args=(candidates(),))
    thread.start()
    assert is_inside.wait(BOUND)
    for call in (
        table.engine.plan,
        table.engine.merge,
        table.engine.unequal,
        lambda: len(table.engine),
        lambda: table.engine.extend([]),
    ):
        with pytest.raises(RuntimeError, match="another call uses"):
            call()
    is_released.set()
    thread.join()
    assert len(table.engine) == 1
