"""The missing ranges of one file, shared by all mirrors that are used at once.

A mirror gets the next range as soon as it has room for one, so each sends as much as its speed
permits.  Rules:

- A range is assigned to one mirror at a time, except at the end: when no other is left, a mirror
  takes over one that is overdue elsewhere, by far more time than its own ranges took.
  The first one to finish counts; a mirror that was overtaken gets no more of this file.
- Ranges that a mirror has not sent when it stops, or sent wrong, go to the others.

Thread-safe; reads no clock but the given one.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from huai_client.transfer.http.ranges import Span

_GRACE = 5.0
"""Seconds before which no range is overdue."""
_TIMES = 3
"""Factor on the time that the other mirror would need."""
_USUAL = 1 / (1 << 20)
"""Seconds a byte, for a mirror that has sent nothing yet."""


@dataclass(frozen=True, slots=True, eq=False)
class AssignedRange:
    """A range that is assigned to a mirror."""

    span: Span
    mirror: int
    since: float
    is_repeated: bool
    """True if it was taken over, and is assigned to another mirror as well."""


class SharedRanges:
    """The ranges of one file, shared by several mirrors, which have numbers.  Thread-safe."""

    def __init__(self, spans: Iterable[Span], clock: Callable[[], float] = time.monotonic) -> None:
        """`spans` in the order of use; they do not overlap."""
        self._fresh = iter(spans)
        self._returned: deque[Span] = deque()
        self._assigned: list[AssignedRange] = []
        self._pace: dict[int, float] = {}
        self._overtaken: set[int] = set()
        self._ended = False
        self._clock = clock
        self._changed = threading.Condition()

    @property
    def over(self) -> bool:
        """True if no mirror needs to continue."""
        with self._changed:
            return self._ended or not (self._assigned or self._has_more())

    def end(self) -> None:
        """Let all mirrors stop."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def left(self) -> list[Span]:
        """Return the ranges that no mirror sent; call it only after all mirrors have stopped."""
        with self._changed:
            return sorted([*self._returned, *self._fresh])

    def assign(self, mirror: int, most: int) -> AssignedRange | None:
        """Assign the next range, or an overdue one of another mirror, to `mirror`; or return None.

        None if none is left, if it has `most` ranges already or was overtaken, or after `end`.
        """
        with self._changed:
            count = sum(other.mirror == mirror for other in self._assigned)
            if self._ended or mirror in self._overtaken or count >= most:
                return None
            is_repeated = not self._has_more()
            span = self._overdue(mirror) if is_repeated else self._returned.popleft()
            if span is None:
                return None
            assigned = AssignedRange(span, mirror, self._clock(), is_repeated)
            self._assigned.append(assigned)
            return assigned

    @contextmanager
    def may_write(self, assigned: AssignedRange) -> Iterator[bool]:
        """Yield True if `assigned` still counts; that cannot change within the block.

        If it is False, the caller writes nothing.
        """
        with self._changed:
            yield assigned in self._assigned

    def complete(self, assigned: AssignedRange, wrong: Sequence[Span] = ()) -> bool:
        """Finish a range; return True if no other mirror was faster.

        Parts that are `wrong` are to be sent again.
        """
        with self._changed:
            if assigned not in self._assigned:
                return False
            self._assigned.remove(assigned)
            rivals = self._rivals(assigned)
            if wrong:
                self._returned.extend(() if rivals else wrong)
            else:
                first, end = assigned.span
                self._pace[assigned.mirror] = (self._clock() - assigned.since) / (end - first)
                for other in rivals:
                    self._assigned.remove(other)
                if assigned.is_repeated:
                    self._overtaken.update(other.mirror for other in rivals)
            self._changed.notify_all()
            return True

    def return_ranges(self, mirror: int) -> None:
        """Let others send the unfinished ranges of `mirror`."""
        with self._changed:
            for assigned in [assigned for assigned in self._assigned if assigned.mirror == mirror]:
                self._assigned.remove(assigned)
                if not self._rivals(assigned):
                    self._returned.append(assigned.span)
            self._changed.notify_all()

    def is_overtaken(self, mirror: int) -> bool:
        """Return True if another mirror was faster with a range of `mirror`."""
        return mirror in self._overtaken

    def wait(self, seconds: float) -> None:
        """Wait until something changes, for `seconds` at most."""
        with self._changed:
            self._changed.wait(seconds)

    def _has_more(self) -> bool:
        """Return True if there is a range that is not assigned."""
        if not self._returned:
            self._returned.extend(span for span in [next(self._fresh, None)] if span)
        return bool(self._returned)

    def _rivals(self, part: AssignedRange) -> list[AssignedRange]:
        """Return the other assignments of the same range."""
        return [other for other in self._assigned if other.span == part.span and other is not part]

    def _overdue(self, mirror: int) -> Span | None:
        """Return the oldest overdue range that one other mirror alone has; None without one."""
        now, pace = self._clock(), self._pace.get(mirror, _USUAL)
        for other in self._assigned:
            size = other.span.end - other.span.first
            late = now - other.since > _GRACE + _TIMES * pace * size
            if late and other.mirror != mirror and not self._rivals(other):
                return other.span
        return None
