"""The faults of a run: two in `./dev test`, one at each point in `./dev test-long`.

Rule to keep: what is left out in the one is tried in the other.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

T = TypeVar("T")

CUTS = int(os.environ.get("HUAI_TEST_CUTS", "2"))
"""The number of points of a run at which it is cut."""

ALL = CUTS > 100
"""Every point is tried, with each error, and each way to go on from there."""

LONG = 300 + 40 * CUTS
"""Seconds that a test with so many cuts may take."""


def _commit() -> str:
    """The commit that is checked out: each tries other points, and a failure comes again."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    done = subprocess.run(git, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip()


SEED = os.environ.get("HUAI_TEST_SEED") or _commit()


def chance(salt: str) -> Random:
    """A generator that gives one test the same numbers for the same seed."""
    return Random(f"{SEED} {salt}")


def cut_points(kinds: Sequence[str], salt: str, parts: int = CUTS) -> list[int]:
    """Choose points of a run, counted from 1: all, or one in each of so many equal parts.

    `kinds` names the call at each point. A kind is chosen before one of its calls, so that the
    one rename of a run is met as often as its hundred writes.
    """
    number = len(kinds)
    if ALL or number <= parts:
        return [*range(1, number + 1)]
    random = chance(salt)
    points = []
    for part in range(parts):
        inside = range(part * number // parts, (part + 1) * number // parts)
        kind = random.choice(sorted({kinds[index] for index in inside}))
        points.append(1 + random.choice([index for index in inside if kinds[index] == kind]))
    return points


def spread(items: Sequence[T], most: int = CUTS) -> Sequence[T]:
    """Take as many items as there are cuts, evenly, and at most `most` of them."""
    return items[:: max(1, -(-len(items) // min(CUTS, most)))]
