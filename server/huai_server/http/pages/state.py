"""The state of a module in one word, and when its next commit is due.

Pure.
"""

from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from huai_server.signing.expiry import is_expiring
from huai_server.store.repository import Head

_FEWEST_GAPS = 3


class Due(NamedTuple):
    """When the next commit is expected, in seconds since the epoch."""

    time: int
    """The newest commit's time and the median of the gaps between commits."""
    late: int
    """Nine of ten gaps ended by then."""


class State(StrEnum):
    """The states of a module, the worst first; the values are classes of the style sheet."""

    UNREADABLE = "unreadable"
    DAMAGED = "damaged"
    EXPIRED = "expired"
    EXPIRING = "expiring"
    OVERDUE = "overdue"
    EMPTY = "empty"
    FRESH = "fresh"


WORDS = {
    State.UNREADABLE: "cannot be read",
    State.DAMAGED: "damaged",
    State.EXPIRED: "signature expired",
    State.EXPIRING: "signature expires soon",
    State.OVERDUE: "overdue",
    State.EMPTY: "never committed",
    State.FRESH: "fresh",
}


def next_due(times: Sequence[int]) -> Due | None:
    """Return when the next commit is expected, by the gaps between commits.

    `times` has the newest first, in seconds since the epoch.  None if they have fewer than three
    gaps.
    """
    gaps = sorted(later - earlier for later, earlier in pairwise(times) if later > earlier)
    if len(gaps) < _FEWEST_GAPS:
        return None
    return Due(times[0] + gaps[len(gaps) // 2], times[0] + gaps[len(gaps) * 9 // 10])


def state_of(newest: Head | None, due: Due | None, damaged: int, now: int) -> State:
    """Return the worst state that applies to a module whose metadata can be read.

    `damaged` is a number of files; `now` is in seconds since the epoch.
    """
    if newest is None:
        return State.EMPTY
    if damaged:
        return State.DAMAGED
    if newest.valid_until and is_expiring(newest, now):
        return State.EXPIRED if newest.valid_until <= now else State.EXPIRING
    if due is not None and now >= due.late + 60:
        return State.OVERDUE
    return State.FRESH
