"""What waits to be deleted, and how spans of time are spelt.

Pure, and loads next to nothing: each sync needs it, also one that finds nothing new.
"""

from typing import NamedTuple

from huai_schema.paths import RelPath

SPAN = "^[0-9]{1,9}[smhdw]?$"
"""What `seconds` reads, as a regular expression."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800}


class Waiting(NamedTuple):
    """A path that no snapshot names any more, and that is to be deleted later."""

    path: RelPath
    directory: bool
    since: int
    """When the indices that named it were replaced, seconds since the epoch; 0: in this run."""


def seconds(text: str) -> int:
    """A span of time such as 90s, 30m, 1h or 2d; a bare number is seconds."""
    unit = _UNITS.get(text[-1:])
    return int(text[:-1]) * unit if unit else int(text)


def overdue(since: int, span: str, now: int) -> bool:
    """Whether what is there since `since` (0: nothing is) has been there for `span`."""
    return since > 0 and since + seconds(span) <= now
