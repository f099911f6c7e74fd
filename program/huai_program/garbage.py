"""Sets how often Python searches for garbage: hardly ever in a short run.

A run makes values without reference cycles, which Python frees by counting references.  Searching
them for cycles took a third of the time of planning a large change.
"""

import gc

_USUAL = gc.get_threshold()
_NEW = 50_000
"""The number of new values that starts a search among these."""
_ROUNDS = 50
"""The number of such searches that starts one among their survivors."""
_NEVER = 1_000_000


def collect_rarely() -> None:
    """Let Python search new values for reference cycles rarely, and old ones never."""
    gc.set_threshold(_NEW, _ROUNDS, _NEVER)


def collect_usually() -> None:
    """Search all values from time to time, for a program that runs for months."""
    gc.set_threshold(*_USUAL)
