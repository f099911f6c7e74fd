"""One line of a module's history: a run, or several equal failures in a row.

Pure.  Rule: a new field needs a default, and unknown fields are ignored, so that every version
reads the lines of every other one.
"""

from typing import Annotated, Literal, Self

import msgspec

from huai_schema.errors import ExitCode

REASON_MOST = 400
"""Characters of a reason that are kept."""

Kind = Literal["sync", "deletions", "verify", "repair", "undo"]
Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
"""Larger numbers are refused: they may be too large to show."""


class RunRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a run ended."""

    kind: str
    """A `Kind`, or a kind of a later version.

    `deletions`: nothing was new, and deletions that had waited were due.
    """
    time: Number
    """When it began, seconds since the epoch."""
    seconds: float = 0.0
    code: Number = 0
    """The exit code."""
    reason: str = ""
    """What went wrong; empty: nothing."""
    before: str = ""
    """The applied commit when it began; empty: there was none."""
    commit: str = ""
    """The commit that the run brought the tree to, or tried to; empty: it did not know one."""
    serial: Number = 0
    done: dict[str, Number] = {}
    """How many steps of each kind; kinds without a step are left out."""
    fetched: Number = 0
    """Files that were to be fetched."""
    received: Number = 0
    """Bytes over the wire."""
    total_bytes: Number = 0
    """Of all files of the module."""
    changed: bool = True
    """False: there was nothing to do."""
    differences: Number = 0
    """Paths that `verify` found to differ."""
    content: bool = False
    """Whether `verify` read every file."""
    times: Number = 1
    """How many runs in a row ended like this."""
    last: Number = 0
    """When the last of several began; 0: there was one."""
    process: Number = 0
    """Its id; tells runs of the same second apart."""
    ended: bool = True
    """False: the run has begun to change something, and its end is not recorded."""

    @property
    def good(self) -> bool:
        """Whether it ended well."""
        return self.ended and self.code == ExitCode.OK

    @property
    def outcome(self) -> str:
        """The name of the exit code, `OK` if it ended well; `CUT` if it did not end."""
        if not self.ended:
            return "CUT"
        return next((code.name for code in ExitCode if code == self.code), str(self.code))

    @property
    def until(self) -> int:
        """When the last run of this record began."""
        return self.last or self.time

    def alike(self, other: Self) -> bool:
        """Whether both are failures with the same kind, code, reason and commit."""
        mine = (self.kind, self.code, self.reason, self.before, self.commit)
        return (
            self.ended
            and other.ended
            and not self.good
            and mine
            == (
                other.kind,
                other.code,
                other.reason,
                other.before,
                other.commit,
            )
        )

    def begins(self, later: Self) -> bool:
        """Whether `later` is the end of the same run."""
        same = (self.time, self.process) == (later.time, later.process)
        return same and not self.ended

    def again(self, later: Self) -> Self:
        """This record with one more run, the equal failure `later`."""
        changes = {"times": self.times + later.times, "last": later.until}
        return msgspec.structs.replace(self, **changes)
