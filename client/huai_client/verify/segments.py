"""The comparison of a job, segment by segment, each with the tree that is expected at that time.

Results from a time when the tree was changed are discarded, and the paths are read again.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, Self

from huai_client.config.mirror import Mirror
from huai_client.diff.candidate import Difference, DifferenceKind, FoundDifference
from huai_client.diff.remains import check_destination
from huai_client.run.options import NEVER, Deadline
from huai_client.state.seen import SeenDigests
from huai_client.state.state import StateError
from huai_client.tree import View
from huai_client.verify.check import VerifyTotals, check_steps
from huai_client.verify.expected import ExpectedTree, Stamp
from huai_client.verify.jobs import VerifyJob
from huai_client.verify.parts import part_at
from huai_program.priority import idle_disk
from huai_schema.errors import HuaiError

_SLICE_SECONDS = 2.0
"""The interval at which to check that the applied commit is still the same."""


class Segment(NamedTuple):
    """The differences between two checkpoints, except those on purpose."""

    deviations: list[FoundDifference]
    position: bytes | None
    """The order of the second checkpoint; None at the end of the job."""
    stamp: Stamp
    """The stamp of the tree that was expected."""
    identity: bytes = b""
    """At the end: the `identity` of the part in that tree; empty without such a part."""


class Comparison:
    """Compares jobs of a module with the tree that is expected at that time."""

    def __init__(
        self, view: View, now: Callable[[], ExpectedTree], tally: VerifyTotals, *, content: bool
    ) -> None:
        """Add to `tally`; with `content` read files as well."""
        self.view = view
        self.now = now
        self._tally = tally
        self._content = content
        self._next_mark = 0.0
        self.unopened = ""
        """The reason why the digests seen on arrival cannot be read; empty if they can."""

    @classmethod
    @contextmanager
    def opened(
        cls,
        mirror: Mirror,
        tally: VerifyTotals,
        on_change: Callable[[ExpectedTree], None] = lambda _: None,
        *,
        content: bool,
    ) -> Iterator[Self]:
        """Yield a comparison at idle disk priority; call `on_change` with each expected tree.

        Raises `DestinationError` if the tree seems unmounted, `NotSyncedError` without an applied
        commit.
        """
        expected: ExpectedTree | None = None

        def now() -> ExpectedTree:
            """Return the tree that is expected now."""
            nonlocal expected
            if expected is None or not expected.holds():
                expected = ExpectedTree(mirror, digests)
                on_change(expected)
            return expected

        digests, unopened = None, ""
        with (
            View(mirror.dest, owners=mirror.config.owners) as view,
            ExitStack() as stack,
            idle_disk(),
        ):
            try:
                if content and mirror.paths.seen_digests.exists():
                    digests = stack.enter_context(SeenDigests(mirror.paths.seen_digests))
            except StateError as error:
                unopened = f"{error.message}; {error.hint}"
            check_destination(view, [now().selection])
            comparison = cls(view, now, tally, content=content)
            comparison.unopened = unopened
            yield comparison

    def segments(
        self, job: VerifyJob, after: bytes, deadline: Deadline = NEVER
    ) -> Iterator[Segment]:
        """Yield the segments of a job behind `after`, a position, until its end.

        At the `deadline` the segment ends, for the caller to stop.
        """
        position: bytes | None = after
        while position is not None:
            for segment in self._until_change(self.now(), job, position, deadline):
                yield segment
                position = segment.position

    def _until_change(
        self, expected: ExpectedTree, job: VerifyJob, after: bytes, deadline: Deadline
    ) -> Iterator[Segment]:
        """Yield the segments of the job after `after`, until a run changes the tree.

        An error after such a change only ends them.
        """
        try:
            for deviations, position in self._read(expected, job, after, deadline):
                if not expected.holds():
                    return
                real = [each for each in deviations if not expected.is_expected_deviation(each)]
                part = part_at(expected.selection, job.path) if position is None else None
                yield Segment(real, position, expected.stamp, part.identity if part else b"")
        except HuaiError:
            # A commit that is no longer applied may have left the repository.
            if expected.holds():
                raise

    def _read(
        self, expected: ExpectedTree, job: VerifyJob, after: bytes, deadline: Deadline
    ) -> Iterator[tuple[list[FoundDifference], bytes | None]]:
        """Yield the differences of a job between checkpoints, with the position of the second."""
        started = job.start(self.view, expected, after, content=self._content)
        deviations: list[FoundDifference] = []
        for item in check_steps(
            self.view,
            started.steps,
            self._tally,
            content=self._content,
            pause=lambda: self._pauses(deadline),
        ):
            if isinstance(item, FoundDifference):
                deviations.append(item)
                continue
            deviations += (
                FoundDifference(Difference(each.path, DifferenceKind.EXTRANEOUS))
                for each in started.extraneous()
            )
            yield deviations, item.order
            deviations = []
        yield deviations, None

    def _pauses(self, deadline: Deadline) -> bool:
        """Return True, once every two seconds or at the deadline, for a checkpoint."""
        now = time.monotonic()
        if now < self._next_mark and not deadline.over:
            return False
        self._next_mark = now + _SLICE_SECONDS
        return True
