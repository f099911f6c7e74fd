"""Checks of ages against durations of a configuration file (`90s`, `12h`, `2d`).

Pure, and imports very little: each poll calls it.
"""

from typing import TYPE_CHECKING

from huai_program.durations import seconds
from huai_program.humanize import long_span
from huai_schema.limits import CLOCK_SKEW

if TYPE_CHECKING:
    from huai_client.config.load import Module


def overdue(since: int, span: str, now: int) -> bool:
    """Return True if `span`, such as "7d", has passed since `since`; False if `since` is 0.

    `since` and `now` in seconds since the epoch.
    """
    return since > 0 and since + seconds(span) <= now


def why_too_old(committed: int, max_age: str, now: float, *, first_seen: int = 0) -> str:
    """Return why a commit of the time `committed` is too old for `max_age`, or an empty text.

    Times are in seconds since the epoch, and 0 if unknown; a commit without any known time is
    never too old, and a `max_age` of 0 allows everything.  A commit is as old as its time says,
    and at least as old as the time since `first_seen`: one dated ahead does not stay young.
    """
    most = seconds(max_age)
    since = min((moment for moment in (committed, first_seen) if moment > 0), default=0)
    age = int(now) - since
    if not most or not since or age <= most:
        return ""
    least = "at least " if since != committed else ""
    return (
        f"the newest commit of the upstream is {least}{long_span(age)} old, more than max_age = "
        f'"{max_age}" allows'
    )


def why_expired(valid_until: int, now: float) -> str:
    """Return why a signature that is valid until `valid_until` has expired, or an empty text.

    Times are in seconds since the epoch; 0 means that the commit is not signed.
    """
    over = int(now) - valid_until
    if not valid_until or over <= CLOCK_SKEW:
        return ""
    return (
        f"the signature of the newest commit was valid until {long_span(over)} ago: newer ones are "
        "held back, the upstream does not commit, or this machine's clock is wrong"
    )


def why_out_of_date(
    module: "Module", now: float, committed: int, first_seen: int, valid_until: int
) -> str:
    """Return why a commit with these times is out of date, by age or signature, or empty.

    All are seconds since the epoch, as in `why_too_old` and `why_expired`.
    """
    reason = "" if module.verify == "off" else why_expired(valid_until, now)
    return reason or why_too_old(committed, module.max_age, now, first_seen=first_seen)


def clock_warning(committed: int, now: float) -> str:
    """Return a warning about a commit of the time `committed` that is after `now`, or empty."""
    ahead = committed - int(now)
    if ahead <= CLOCK_SKEW:
        return ""
    return (
        f"the upstream's commit is dated {long_span(ahead)} ahead of this machine's clock: one of "
        "the two is wrong; its age counts from when it was first seen here"
    )
