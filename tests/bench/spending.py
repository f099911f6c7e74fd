"""The cost of a command: time on the clock, CPU time, memory; and medians over fair rounds.

The rule to keep: the process that measures stays small.  The kernel counts what a child
shared with its parent before `exec` towards the child's peak, so trees are made, and
large lists held, by processes of their own.
"""

import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.bench.figures import Figure, Goal

_SECONDS = 3600
"""No command of a benchmark takes longer; it is killed."""


class Spent(NamedTuple):
    """One run of a command, with all its children."""

    wall: float
    """Seconds from start to exit."""
    cpu: float
    """Seconds of CPU time, user and system."""
    peak: int
    """Bytes of the largest process."""
    first: float
    """Seconds until the line that was waited for came; 0 if none was, all if it never came."""
    output: bytes
    """Standard output; empty if nothing was waited for."""


Contestant = Callable[[], Spent]


class CommandFailedError(Exception):
    """A command of a benchmark failed, so its time means nothing."""


def spend(command: Sequence[str], *, until: bytes | None = None) -> Spent:
    """Run a command to its end.

    Output goes to /dev/null, or, with `until`, is read here line by line, and the time of
    the first line that contains `until` is noted.
    """
    with tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if until is None else subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "LC_ALL": "C"},
        )
        timer = threading.Timer(_SECONDS, process.kill)
        timer.start()
        try:
            lines, first = _listen(process, until, began)
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            timer.cancel()
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            message = errors.read()[-2000:].decode(errors="replace")
            raise CommandFailedError(f"{command} ended with {process.returncode}: {message}")
    cpu = usage.ru_utime + usage.ru_stime
    return Spent(wall, cpu, usage.ru_maxrss * 1024, first or (wall if until else 0.0), lines)


def _listen(
    process: subprocess.Popen[bytes], until: bytes | None, began: float
) -> tuple[bytes, float]:
    if process.stdout is None or until is None:
        return b"", 0.0
    lines, first = [], 0.0
    with process.stdout as output:
        for line in output:
            if not first and until in line:
                first = time.perf_counter() - began
            lines.append(line)
    return b"".join(lines), first


def take_turns(
    contestants: Mapping[str, Contestant], rounds: int, prepare: Callable[[], None]
) -> dict[str, list[Spent]]:
    """Every contestant once a round, in alternating order, so that a slow minute hits all."""
    samples: dict[str, list[Spent]] = {name: [] for name in contestants}
    for number in range(rounds):
        names = list(contestants)
        for name in names if number % 2 == 0 else reversed(names):
            prepare()
            samples[name].append(contestants[name]())
    return samples


def wall(samples: Sequence[Spent]) -> float:
    """The median of the time on the clock."""
    return statistics.median(spent.wall for spent in samples)


def cpu(samples: Sequence[Spent]) -> float:
    """The median of the CPU time."""
    return statistics.median(spent.cpu for spent in samples)


def peak(samples: Sequence[Spent]) -> float:
    """The median of the memory."""
    return statistics.median(spent.peak for spent in samples)


def compare_clients(
    title: str, ours: Sequence[Spent], peer: str, theirs: Sequence[Spent], goal: Goal | None = None
) -> Iterator[Figure]:
    """Yield the time on the clock, the CPU time and the memory of a client and of its peer."""
    rounds = len(ours)
    yield Figure(title, wall(ours), "s", peer, wall(theirs), goal, rounds=rounds)
    yield Figure(f"{title}, client's CPU", cpu(ours), "s", peer, cpu(theirs), rounds=rounds)
    yield Figure(f"{title}, client's memory", peak(ours), "B", peer, peak(theirs), rounds=rounds)
