"""One run of `verify`: it executes the jobs, and reports differences.

Holds no lock while it reads, so a sync never waits for it; results from a time when the tree was
changed are discarded, and the paths are read again.
Rule: a part is recorded as verified when all of it was read, with the number of paths that differ.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from huai_client.config.mirror import Mirror
from huai_client.diff.candidate import Difference, DifferenceKind, FoundDifference
from huai_client.diff.remains import check_destination
from huai_client.state.seen import SeenDigests
from huai_client.state.state import StateError
from huai_client.state.verification import VerificationRecord
from huai_client.tree import View
from huai_client.verify.check import VerifyTotals, check_steps
from huai_client.verify.expected import ExpectedTree
from huai_client.verify.jobs import VerifyJob
from huai_client.verify.parts import follow_selection
from huai_client.verify.queue import Queue, VerifyRequest
from huai_client.verify.recheck import Recheck
from huai_program.priority import idle_disk
from huai_schema.errors import HuaiError
from huai_schema.paths import RelPath, ancestors

_SLICE_SECONDS = 2.0
"""The interval at which to check that the applied commit is still the same."""


class _Segment(NamedTuple):
    """The differences between two checkpoints."""

    deviations: list[FoundDifference]
    position: bytes | None
    """The order of the second checkpoint; None at the end of the job."""


class VerifyRun:
    """A run of `verify`; the caller holds the lock for such runs."""

    def __init__(
        self, mirror: Mirror, request: VerifyRequest, on_difference: Callable[[Difference], None]
    ) -> None:
        """Call `on_difference` with each difference.  Nothing is read yet."""
        self._mirror = mirror
        self._request = request
        self._recheck = Recheck(mirror.paths.lock, on_difference)
        self._expected: ExpectedTree | None = None
        self._next_mark = 0.0
        self._after_repair: dict[RelPath, int] = {}
        """The number of paths that still differ after a repair, by part."""
        self.tally = VerifyTotals()
        self.left = 0
        """The number of parts that were not verified because the time was over."""
        self.unopened = ""
        """The reason why the digests seen on arrival cannot be read; empty if they can."""

    def run(self, *, wait: float) -> None:
        """Verify all jobs, or as many as the time allows; report differences, and record the parts.

        `wait` is the time in seconds to wait at the end for a run that changes the tree; after it
        the differences are reported nevertheless.  Sets `left` and `unopened`.  Raises
        `DestinationError` if the tree seems unmounted, `NoSuchPathError` for an unknown path,
        `NotSyncedError` without an applied commit.
        """
        with (
            View(self._mirror.dest, owners=self._mirror.config.owners) as view,
            VerificationRecord(self._mirror.paths.verified) as record,
            self._opened_digests() as self._seen_digests,
            idle_disk(),
        ):
            selection = self._now(record).selection
            check_destination(view, [selection])
            queue = Queue(record, self._request)
            for job in queue.jobs(selection):
                if not self._do_job(view, record, queue, job):
                    self.left = queue.left()
                    break
            self._recheck.settle_all(view, lambda: self._now(record), wait=wait)
            queue.correct(self._recheck.counts)
            self._after_repair = queue.repaired(self._recheck.counts)

    def repaired(self, unread: Iterable[RelPath] = ()) -> None:
        """Record that all differences of this run were repaired, except at the paths `unread`."""
        left = Counter(self._after_repair)
        for path in unread:
            parts = (part for part in (path, *ancestors(path)) if part in self._after_repair)
            left.update([*parts][:1])
        with VerificationRecord(self._mirror.paths.verified) as record, record.writing():
            for part, count in left.items():
                record.record_damage(part, count)

    def _opened_digests(self) -> AbstractContextManager[SeenDigests | None]:
        """Open the digests seen on arrival; None, with `unopened`, if that fails or without any."""
        path = self._mirror.paths.seen_digests
        try:
            if self._request.content and path.exists():
                return SeenDigests(path)
        except StateError as error:
            self.unopened = f"{error.message}; {error.hint}"
        return nullcontext()

    def _now(self, record: VerificationRecord) -> ExpectedTree:
        """Return the tree that is expected now; if a sync changed it, adapt `record` to that."""
        if self._expected is None or not self._expected.holds():
            self._expected = ExpectedTree(self._mirror, self._seen_digests)
            follow_selection(record, self._expected.applied, self._expected.selection)
        return self._expected

    def _do_job(self, view: View, record: VerificationRecord, queue: Queue, job: VerifyJob) -> bool:
        """Do a job and record its progress; return False if the time was over before its end."""
        part = queue.beginning(job)
        before = part.damaged
        while True:
            expected = self._now(record)
            for segment in self._segments(view, expected, job, part.position):
                self._recheck.add(job.path, segment.deviations, expected)
                part = part._replace(damaged=before + self._recheck.counts[job.path])
                if segment.position is None:
                    queue.record_completed(job, part, expected.selection)
                    return True
                part = part._replace(position=segment.position)
                queue.record_position(job, part)
                if self._request.deadline.over:
                    return False
                self._recheck.settle(view, lambda: self._now(record))

    def _segments(
        self, view: View, expected: ExpectedTree, job: VerifyJob, after: bytes
    ) -> Iterator[_Segment]:
        """Yield the segments of the job after `after`, until a run changes the tree.

        An error after such a change only ends them.
        """
        try:
            for segment in self._read(view, expected, job, after):
                if not expected.holds():
                    return
                yield segment
        except HuaiError:
            # A commit that is no longer applied may have left the repository.
            if expected.holds():
                raise

    def _read(
        self, view: View, expected: ExpectedTree, job: VerifyJob, after: bytes
    ) -> Iterator[_Segment]:
        """Yield the differences of a job, segment by segment, the last with the position None."""
        content = self._request.content
        started = job.start(view, expected, after, content=content)
        deviations: list[FoundDifference] = []
        for item in check_steps(
            view, started.steps, self.tally, content=content, pause=self._pauses
        ):
            if isinstance(item, FoundDifference):
                deviations.append(item)
                continue
            deviations += (
                FoundDifference(Difference(each.path, DifferenceKind.EXTRANEOUS))
                for each in started.extraneous()
            )
            yield _Segment(deviations, item.order)
            deviations = []
        yield _Segment(deviations, None)

    def _pauses(self) -> bool:
        """Return True, once every two seconds or at the deadline, for a checkpoint."""
        now = time.monotonic()
        if now < self._next_mark and not self._request.deadline.over:
            return False
        self._next_mark = now + _SLICE_SECONDS
        return True
