"""How old the newest commit may be before somebody should look at the upstream.

Pure, and loads next to nothing: each poll passes here.
"""

from huai_client.publishing.patience import seconds

_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def too_old(committed: int, max_age: str, now: float) -> str:
    """Why a commit made at `committed` is too old for `max_age`; empty: it is not.

    Times in seconds since the epoch; `committed` 0 is not known and never too old, and a
    `max_age` of 0 allows everything.  A commit of the future is new, whatever the clocks say.
    """
    most = seconds(max_age)
    age = int(now) - committed
    if not most or not committed or age <= most:
        return ""
    return (
        f"the newest commit of the upstream is {_span(age)} old, more than max_age = "
        f'"{max_age}" allows'
    )


def _span(age: int) -> str:
    """The two largest units of a span of seconds."""
    parts: list[str] = []
    for name, size in _UNITS:
        count, age = divmod(age, size)
        if count:
            parts.append(f"{count} {name}{'s' if count > 1 else ''}")
    return " ".join(parts[:2]) or "0 seconds"
