"""Scenarios of runs that are killed or refused a system call, and the loop that tries them.

A scenario begins at the same start for each fault: a copy of its folders is put back. Then a
child does the run, and one of its system calls is its last or fails. The next run comes after it.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import pytest

from tests.fault.sampling import ALL, CUTS, SEED, chance, cut_points
from tests.fault.story import Story
from tests.support.system_calls import CHANGING, KILL, Call, Cut, supervise
from tests.support.upstream import Site

SECONDS = 60
SPARE = 20
"""Calls by which two equal runs may differ: threads make one directory."""
LEAST = 4
"""Calls of the shortest run; fewer would mean that the faults miss it."""


class Fault(NamedTuple):
    """A fault that one system call of a run meets."""

    answer: int
    """`KILL`, or the errno that the call gets."""
    onward: bool = False
    """True if all calls after it get the same answer, as on a full disk."""
    calls: Sequence[str] = CHANGING
    """The groups of calls that may meet it."""


KILLED = Fault(KILL)


def refused(*numbers: int, onward: bool = False, calls: Sequence[str] = CHANGING) -> list[Fault]:
    """One call, or all `onward` from it, fails with one of these errors."""
    return [Fault(number, onward, calls) for number in numbers]


class Hit(NamedTuple):
    """A fault that a run has met, and what came of the run."""

    fault: Fault
    point: int
    total: int
    """Points of a whole run."""
    call: str
    result: object
    """The result of the run; None if it was killed."""

    def __str__(self) -> str:
        error = os.strerror(self.fault.answer) if self.fault.answer > 0 else "killed"
        return f"{error} at {self.call}, call {self.point} of {self.total}, returned {self.result}"

    @property
    def word(self) -> str:
        """The first word of what the run returned, which is an exit code after an error."""
        return str(self.result).partition(" ")[0]

    @property
    def killed(self) -> bool:
        return self.fault.answer == KILL and self.result is None

    @property
    def names_the_reason(self) -> bool:
        """The system's words are there, or the client's own, which explain EPERM further."""
        words = os.strerror(self.fault.answer).removeprefix("Operation ")
        return self.fault.answer > 0 and words in str(self.result)


class Ground:
    """The place of a scenario: an empty folder, and what tests share."""

    def __init__(self, folder: Path, request: pytest.FixtureRequest, stack: ExitStack) -> None:
        self.folder = folder
        self.enter = stack.enter_context
        self._request = request

    @property
    def site(self) -> Site:
        site: Site = self._request.getfixturevalue("place")
        return site

    @property
    def story(self) -> Story:
        story: Story = self._request.getfixturevalue("story")
        return story

    @property
    def patch(self) -> pytest.MonkeyPatch:
        patch: pytest.MonkeyPatch = self._request.getfixturevalue("monkeypatch")
        return patch


class Scene(Protocol):
    """The folders and values that a scenario works with."""

    @property
    def folders(self) -> Sequence[Path]:
        """The folders that a run or the one after it changes."""


S = TypeVar("S", bound=Scene)
NextRun: TypeAlias = Callable[[S, Hit], object]


@dataclass(frozen=True)
class Scenario(Generic[S]):
    """One run of the product that may be cut anywhere."""

    name: str
    start: Callable[[Ground], S]
    """Make what is there before the run."""
    run: Callable[[S], object]
    """The run that is cut; its result is the same each time if it is not."""
    right_after: Callable[[S, Hit], object]
    """Check what the fault left; return on which side of the run it was."""
    next_runs: Sequence[NextRun[S]]
    """Ways to go on, of which each has to end well."""
    sides: Collection[object] = ()
    """The results of `right_after` if a run is cut at every point."""
    faults: Sequence[Fault] = (KILLED,)
    """The faults of its calls, the kill first."""
    everywhere: bool = False
    """Check `right_after` before each call of a whole run, too: it costs little."""


@contextmanager
def undone(*folders: Path) -> Iterator[None]:
    """Let folders be afterwards as they were before."""
    copies = FolderCopies(folders)
    try:
        yield
    finally:
        copies.restore()
        copies.discard()


class FolderCopies:
    """Copies of folders, next to them."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._copies = {folder: folder.with_name(f"{folder.name}.kept") for folder in folders}
        for folder, copy in self._copies.items():
            if folder.exists():
                _copy(folder, copy)

    def restore(self) -> None:
        """Put them back; what was not there goes."""
        for folder, copy in self._copies.items():
            shutil.rmtree(folder, ignore_errors=True)
            if copy.exists():
                _copy(copy, folder)

    def discard(self) -> None:
        """Remove the copies."""
        for copy in self._copies.values():
            shutil.rmtree(copy, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", "--", source, target], check=True, timeout=SECONDS)


def try_faults(scenario: Scenario[S], ground: Ground) -> None:
    """Let the run meet faults at some points, and continue from there."""
    scene = scenario.start(ground)
    copies = FolderCopies(scene.folders)
    whole_runs: dict[Sequence[str], tuple[list[str], object]] = {}
    for fault in _chosen(scenario):
        if fault.calls not in whole_runs:
            copies.restore()
            whole_runs[fault.calls] = _whole_run(scenario, scene, fault)
        calls, result = whole_runs[fault.calls]
        results, sides = [], set[object]()
        for point, next_run in _points(scenario, fault, calls):
            copies.restore()
            hit = _hit(scenario, scene, fault, point, len(calls))
            with _context(scenario, hit):
                if fault.answer == KILL and not hit.killed:
                    assert point > len(calls) - SPARE, "not killed"
                    assert hit.result == result
                sides.add(scenario.right_after(scene, hit))
                next_run(scene, hit)
            results.append(hit.result)
        if ALL:
            assert any(each != result for each in results), f"{fault} changes nothing"
            assert fault.answer != KILL or sides >= {*scenario.sides}


def _chosen(scenario: Scenario[S]) -> Sequence[Fault]:
    """The kill, and some of the errors."""
    first, *errors = scenario.faults
    number = len(errors) if ALL else min(CUTS, len(errors))
    return [first, *chance(scenario.name).sample(errors, number)]


def _points(
    scenario: Scenario[S], fault: Fault, calls: Sequence[str]
) -> Iterator[tuple[int, NextRun[S]]]:
    """The points where the run meets the fault, each with a way to go on."""
    parts = CUTS if fault.answer == KILL else max(1, CUTS // 2)
    for point in cut_points(calls, f"{scenario.name} {fault.answer}", parts):
        ways = scenario.next_runs
        for next_run in ways if ALL else [chance(f"{scenario.name} {point}").choice(ways)]:
            yield point, next_run


def _whole_run(scenario: Scenario[S], scene: S, fault: Fault) -> tuple[list[str], object]:
    """Let the run be; what a kill would leave is there before each call."""
    counting, sides = Cut(0), set[object]()

    def look(call: Call) -> None:
        counting(call)
        hit = Hit(KILLED, counting.passed, 0, call.name, None)
        with _context(scenario, hit):
            sides.add(scenario.right_after(scene, hit))

    decide = look if scenario.everywhere else counting
    outcome = supervise(fault.calls, lambda: scenario.run(scene), decide)
    assert len(counting.names) >= LEAST, "the faults miss the run"
    assert not scenario.everywhere or sides >= {*scenario.sides}
    return counting.names, outcome.result


def _hit(scenario: Scenario[S], scene: S, fault: Fault, point: int, total: int) -> Hit:
    cut = Cut(point, fault.answer, onward=fault.onward)
    outcome = supervise(fault.calls, lambda: scenario.run(scene), cut)
    call = cut.names[point - 1] if point <= len(cut.names) else ""
    return Hit(fault, point, total, call, outcome.result)


@contextmanager
def _context(scenario: Scenario[S], hit: Hit) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(f"{scenario.name}: {hit}; HUAI_TEST_SEED={SEED} HUAI_TEST_CUTS={CUTS}")
        raise
