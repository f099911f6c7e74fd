"""The ranges of one file that are still to come, shared by all mirrors that are asked at once.

A mirror takes the next range as soon as it has room for one, so each brings as much as it is fast.
Rules to keep:

- A range is asked of one mirror at a time, but for the end game: when no other is left, a mirror
  takes over one that is overdue elsewhere, which takes longer by far than its own ranges did.
  Whoever is first with it counts; a mirror that was overtaken gets no more of this file.
- What a mirror has not brought when it leaves, or brought wrong, goes to the others.

Safe between threads; reads no clock but the one that it is given.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from huai_client.transfer.http.ranges import Span

_GRACE = 5.0
"""Seconds by which no range is late yet."""
_TIMES = 3
"""So many times as long as the other mirror needs."""
_USUAL = 1 / (1 << 20)
"""Seconds a byte, of a mirror that has brought nothing yet."""


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """A range that a mirror is asked for."""

    span: Span
    mirror: int
    since: float
    again: bool
    """Whether it was taken over, and another mirror is asked for it as well."""


class SharedRanges:
    """Of one file; mirrors have numbers."""

    def __init__(self, spans: Iterable[Span], clock: Callable[[], float] = time.monotonic) -> None:
        """`spans` in the order in which to ask; they do not overlap."""
        self._fresh = iter(spans)
        self._back: deque[Span] = deque()
        self._on_the_way: list[Taken] = []
        self._pace: dict[int, float] = {}
        self._overtaken: set[int] = set()
        self._ended = False
        self._clock = clock
        self._changed = threading.Condition()

    @property
    def over(self) -> bool:
        """Whether nobody needs to ask any more."""
        with self._changed:
            return self._ended or not (self._on_the_way or self._more())

    def end(self) -> None:
        """Let all mirrors leave."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def left(self) -> list[Span]:
        """What nobody has brought; only when all mirrors have left."""
        with self._changed:
            return sorted([*self._back, *self._fresh])

    def take(self, mirror: int, most: int) -> Taken | None:
        """The next range for `mirror`, which may have `most` on their way; None: none now."""
        with self._changed:
            mine = sum(each.mirror == mirror for each in self._on_the_way)
            if self._ended or mirror in self._overtaken or mine >= most:
                return None
            again = not self._more()
            span = self._overdue(mirror) if again else self._back.popleft()
            if span is None:
                return None
            taken = Taken(span, mirror, self._clock(), again)
            self._on_the_way.append(taken)
            return taken

    @contextmanager
    def writing(self, taken: Taken) -> Iterator[bool]:
        """Whether `taken` still counts, and goes on to do so within: else nothing is written."""
        with self._changed:
            yield taken in self._on_the_way

    def came(self, taken: Taken, wrong: Sequence[Span] = ()) -> bool:
        """All of `taken` came, of which `wrong` is; whether that counts, as nobody was faster."""
        with self._changed:
            if taken not in self._on_the_way:
                return False
            self._on_the_way.remove(taken)
            rivals = self._rivals(taken)
            if wrong:
                self._back.extend(() if rivals else wrong)
            else:
                first, end = taken.span
                self._pace[taken.mirror] = (self._clock() - taken.since) / (end - first)
                for each in rivals:
                    self._on_the_way.remove(each)
                if taken.again:
                    self._overtaken.update(each.mirror for each in rivals)
            self._changed.notify_all()
            return True

    def give_back(self, mirror: int) -> None:
        """`mirror` brings nothing more of what it has taken."""
        with self._changed:
            for each in [each for each in self._on_the_way if each.mirror == mirror]:
                self._on_the_way.remove(each)
                if not self._rivals(each):
                    self._back.append(each.span)
            self._changed.notify_all()

    def is_overtaken(self, mirror: int) -> bool:
        """Whether another mirror was faster with a range of its."""
        return mirror in self._overtaken

    def wait(self, seconds: float) -> None:
        """Until something changes, for so long at most."""
        with self._changed:
            self._changed.wait(seconds)

    def _more(self) -> bool:
        """Whether there is a range that nobody is asked for."""
        if not self._back:
            self._back.extend(span for span in [next(self._fresh, None)] if span)
        return bool(self._back)

    def _rivals(self, taken: Taken) -> list[Taken]:
        return [each for each in self._on_the_way if each.span == taken.span and each is not taken]

    def _overdue(self, mirror: int) -> Span | None:
        """The range that is longest on its way elsewhere, if that is too long by far."""
        now, pace = self._clock(), self._pace.get(mirror, _USUAL)
        for each in self._on_the_way:
            size = each.span.end - each.span.first
            late = now - each.since > _GRACE + _TIMES * pace * size
            if late and each.mirror != mirror and not self._rivals(each):
                return each.span
        return None
