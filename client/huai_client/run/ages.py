"""Judges ages by durations of a configuration file (`90s`, `12h`, `2d`).

Pure, and loads next to nothing: each poll passes here.
"""

from huai_program.durations import seconds
from huai_program.humanize import long_span
from huai_schema.limits import CLOCK_SKEW


def overdue(since: int, span: str, now: int) -> bool:
    """Whether what is there since `since` (0: nothing is) has been there for `span`."""
    return since > 0 and since + seconds(span) <= now


def too_old(committed: int, max_age: str, now: float, *, seen: int = 0) -> str:
    """Why a commit made at `committed`, and seen here first at `seen`, is too old for `max_age`.

    Empty: it is not.  Times in seconds since the epoch, 0: not known; what nothing is known of is
    never too old, and a `max_age` of 0 allows everything.  A commit is as old as it says, and
    at least as old as it is here: one that was dated ahead does not stay young for ever.
    """
    most = seconds(max_age)
    since = min((moment for moment in (committed, seen) if moment > 0), default=0)
    age = int(now) - since
    if not most or not since or age <= most:
        return ""
    least = "at least " if since != committed else ""
    return (
        f"the newest commit of the upstream is {least}{long_span(age)} old, more than max_age = "
        f'"{max_age}" allows'
    )


def expired(valid_until: int, now: float) -> str:
    """Why a commit whose signature holds until `valid_until` is not to be relied on any more.

    Empty: it is.  Times in seconds since the epoch, 0: it is not signed.
    """
    over = int(now) - valid_until
    if not valid_until or over <= CLOCK_SKEW:
        return ""
    return (
        f"the signature of the newest commit was valid until {long_span(over)} ago: newer ones are "
        "held back, the upstream does not commit, or this machine's clock is wrong"
    )


def dated_ahead(committed: int, now: float) -> str:
    """What to say of a commit whose date this machine's clock has not come to; empty: nothing."""
    ahead = committed - int(now)
    if ahead <= CLOCK_SKEW:
        return ""
    return (
        f"the upstream's commit is dated {long_span(ahead)} ahead of this machine's clock: one of "
        "the two is wrong; its age counts from when it was first seen here"
    )
