"""Exit codes, and the base class of every error that huai raises on purpose.

A `HuaiError` has a message (what and where), a hint (what to do next) and an exit code.  Each
concrete error is defined next to the code that raises it; only errors of several packages are here.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import ClassVar, Self, TypeVar

Code = TypeVar("Code", bound=int)


class ExitCode(IntEnum):
    """The exit code of a huai program.  Below 40 the numbers have rsync's meanings."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> Self:
        """Add the sentence that JSON.md and the man pages show."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    OK = 0, "success (also: nothing to do)"
    USAGE = 1, "wrong command line"
    NETWORK = 10, "the upstream, or a bucket, cannot be reached, or the connection broke"
    FILE_IO = 11, "reading or writing local files failed"
    PARTIAL = 23, "some files could not be transferred; what was verified is published"
    VANISHED = 24, "files vanished upstream during the run; what was verified is published"
    MAX_DELETE = 25, "more deletions than the limit allows; nothing was touched"
    TIMEOUT = 30, "the other side stopped sending, or the time of --max-time is over"
    CONFIG = 40, "the configuration is wrong"
    INCOMPLETE = 41, "committed, but some paths could not be read; their old entries stay"
    EMPTY_ROOT = 42, "the tree to commit is missing or empty; nothing was committed"
    LOCKED = 43, "another run holds the lock"
    FORMAT = 44, "metadata is malformed, of an unknown version, or announces more than is allowed"
    UNKNOWN_MODULE = 45, "no such module, or it has no commit yet"
    ROLLED_BACK = 46, "the upstream's serial decreased or jumped, or it serves another module"
    DIFFERS = 47, "the tree differs from the applied snapshot"
    MISMATCH = 48, "content does not match its metadata; nothing unverified was published"
    NO_SPACE = 49, "not enough free space; the tree was not changed"
    UNSOUND = 50, "the metadata repository is damaged"
    REQUIREMENT = 51, "a program or library that is needed is missing or too old"
    DESTINATION = 52, "the destination cannot be used"
    FALLBACK = 53, "the fallback cannot serve a module as it should; the message says why"
    STALE = 54, "the newest commit that is here is older than max_age, or its signature expired"
    UNWRITTEN = 55, "done, but the output could not be written"
    HOOK = 56, "a hook failed; if it was `before`, nothing was begun"
    UNSIGNED = 57, "a signature that is needed is missing, wrong or cannot be made"
    UNPROVED = 58, "a proof refused a package repository; its indices and pointers stay as they are"
    DAMAGED = 59, "content changed under an unchanged size and time; the committed digests stay"
    INTERRUPTED = 130, "interrupted; the next run continues from here"
    UNREAD = 141, "done, but the reader of the output went away"
    TERMINATED = 143, "terminated; the next run continues from here"


_MILD = (
    ExitCode.OK,
    ExitCode.INCOMPLETE,
    ExitCode.VANISHED,
    ExitCode.LOCKED,
    ExitCode.TIMEOUT,
    ExitCode.NETWORK,
    ExitCode.PARTIAL,
)
"""The codes that the next run may repair, from the best to the worst."""


def worst_exit_code(codes: Iterable[Code]) -> Code | ExitCode:
    """Return the code to end with after several modules or steps; 0 if there are none.

    Failures that the next run may repair count least; among equals the first counts.
    """
    return max(codes, key=_weight, default=ExitCode.OK)


def _weight(code: int) -> int:
    """Return the rank of a code: its place in `_MILD`, or the highest for all others."""
    return _MILD.index(code) if code in _MILD else len(_MILD)


class HuaiError(Exception):
    """The base of every expected failure, which is shown without a traceback."""

    exit_code: ClassVar[ExitCode] = ExitCode.FILE_IO

    def __init__(self, message: str, *, hint: str = "") -> None:
        """Keep `message` (what and where) and `hint` (what to do next)."""
        super().__init__(message)
        self.message = message
        self.hint = hint


class FormatError(HuaiError):
    """An error for metadata that breaks a rule of FORMAT.md, at `place`."""

    exit_code = ExitCode.FORMAT

    def __init__(self, reason: str, place: str = "") -> None:
        """Keep `reason`, the broken rule, and `place`, the object, line or path."""
        super().__init__(
            f"{place}: {reason}" if place else reason,
            hint="the upstream's metadata is damaged or hostile; nothing was changed",
        )
        self.reason = reason
        self.place = place

    def within(self, place: str) -> "FormatError":
        """Return an equal error with `place` in front of its own place."""
        return FormatError(self.reason, f"{place}: {self.place}" if self.place else place)


class MissingObjectError(FormatError):
    """The upstream builds on an object that is missing here.

    Either the upstream is wrong, or this client lost an object that it claimed to have.
    """
