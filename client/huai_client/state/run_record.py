"""A line of a module's history: a run, or several equal failures in a row.

Pure.  Rule: a new field needs a default, and unknown fields are ignored, so that every version
reads the lines of every other one.
"""

from typing import Annotated, Literal, Self

import msgspec

from huai_schema.errors import ExitCode

REASON_MOST = 400
"""The length in characters to which a reason is cut."""

Kind = Literal["sync", "deletions", "verify", "repair", "undo"]
Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
"""A number; larger ones are refused, as they may be too large to show."""


class RunRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a run."""

    kind: str
    """A `Kind`, or a kind of a later version.

    `deletions`: nothing was new, and delayed deletions were due.
    """
    time: Number
    """The time at which the run began, seconds since the epoch."""
    seconds: float = 0.0
    code: Number = 0
    """The exit code."""
    reason: str = ""
    """The reason of a failure, or empty."""
    before: str = ""
    """The applied commit at the beginning, or empty."""
    commit: str = ""
    """The commit that the run brought the tree to, or tried to, or empty."""
    serial: Number = 0
    done: dict[str, Number] = {}
    """The number of steps by kind, without kinds that have no step."""
    fetched: Number = 0
    """The number of files to fetch."""
    received: Number = 0
    """The bytes received."""
    total_bytes: Number = 0
    """The bytes of all files of the module."""
    changed: bool = True
    """False if there was nothing to do."""
    differences: Number = 0
    """The number of paths that differ, found by `verify`."""
    content: bool = False
    """True if `verify` read every file."""
    times: Number = 1
    """The number of runs in a row that ended like this."""
    last: Number = 0
    """The time at which the last of several began; 0 for a single run."""
    process: Number = 0
    """The process id, which distinguishes runs of the same second."""
    ended: bool = True
    """False if the run has begun to change something, and its end is not recorded."""

    @property
    def succeeded(self) -> bool:
        """True if the run ended well."""
        return self.ended and self.code == ExitCode.OK

    @property
    def outcome(self) -> str:
        """The name of the exit code; `CUT` if the run did not end."""
        if not self.ended:
            return "CUT"
        return next((code.name for code in ExitCode if code == self.code), str(self.code))

    @property
    def until(self) -> int:
        """The time at which the last run of this record began."""
        return self.last or self.time

    def alike(self, other: Self) -> bool:
        """Return True if both are failures with the same kind, code, reason and commit."""
        mine = (self.kind, self.code, self.reason, self.before, self.commit)
        theirs = (other.kind, other.code, other.reason, other.before, other.commit)
        return self.ended and other.ended and not self.succeeded and mine == theirs

    def begins(self, later: Self) -> bool:
        """Return True if `later` is the end of the same run."""
        same = (self.time, self.process) == (later.time, later.process)
        return same and not self.ended

    def again(self, later: Self) -> Self:
        """Return this record with one more run, the equal failure `later`."""
        changes = {"times": self.times + later.times, "last": later.until}
        return msgspec.structs.replace(self, **changes)
