"""How many of the points of a run are tried: some in `./dev test`, each one in `./dev test-long`.

Rule to keep: what is left out in the one is tried in the other.
"""

import os
from collections.abc import Sequence
from random import Random

from tests.support.system_calls import Call

_SEED = os.environ.get("HUAI_TEST_SEED", "0")
_CALLS = 2
"""Single calls cost less than whole syncs: so many of them for each cut."""

CUTS = int(os.environ.get("HUAI_TEST_CUTS", "8"))
"""Cuts in a run, spread evenly; it has some hundred points."""

LONG = 300 + 40 * CUTS
"""Seconds that a test with so many cuts may take."""


def some_of(calls: Sequence[Call], salt: object = "") -> list[Call]:
    """The first and the last call of each kind, and each n-th from a random one on.

    Of a seed, `HUAI_TEST_SEED`; tests with another `salt` take others.
    """
    step = max(1, len(calls) // (CUTS * _CALLS))
    start = Random(f"{_SEED} {salt}").randrange(step)
    chosen = {call.step for call in calls[start::step]}
    for order in (calls, calls[::-1]):
        chosen.update({call.name: call.step for call in order}.values())
    return [call for call in calls if call.step in chosen]
