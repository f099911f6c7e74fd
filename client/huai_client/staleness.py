"""How old the newest commit may be before somebody should look at the upstream.

Pure, and loads next to nothing: each poll passes here.
"""

from huai_client.durations import seconds

_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


_SLACK = 3600
"""Seconds by which two clocks may differ before anybody is told."""


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
        f"the newest commit of the upstream is {least}{_span(age)} old, more than max_age = "
        f'"{max_age}" allows'
    )


def dated_ahead(committed: int, now: float) -> str:
    """What to say of a commit whose date this machine's clock has not come to; empty: nothing."""
    ahead = committed - int(now)
    if ahead <= _SLACK:
        return ""
    return (
        f"the upstream's commit is dated {_span(ahead)} ahead of this machine's clock: one of the "
        "two is wrong; its age counts from when it was first seen here"
    )


def _span(age: int) -> str:
    """The two largest units of a span of seconds."""
    parts: list[str] = []
    for name, size in _UNITS:
        count, age = divmod(age, size)
        if count:
            parts.append(f"{count} {name}{'s' if count > 1 else ''}")
    return " ".join(parts[:2]) or "0 seconds"
