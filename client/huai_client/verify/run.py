"""One run of `verify`: it executes the jobs, and reports differences.

Holds no lock while it reads, so a sync never waits for it.
Rule: a part is recorded as verified when all of it was read, with the number of paths that differ.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from huai_client.config.mirror import Mirror
from huai_client.diff.candidate import Difference
from huai_client.state.verification import Unfinished, VerificationRecord
from huai_client.verify.check import VerifyTotals
from huai_client.verify.expected import ExpectedTree
from huai_client.verify.jobs import PartJob, VerifyJob
from huai_client.verify.parts import follow_selection
from huai_client.verify.queue import Queue, VerifyRequest
from huai_client.verify.recheck import Recheck
from huai_client.verify.segments import Comparison, Segment
from huai_schema.paths import RelPath, ancestors


class VerifyRun:
    """A run of `verify`; the caller holds the lock for such runs."""

    def __init__(
        self, mirror: Mirror, request: VerifyRequest, on_difference: Callable[[Difference], None]
    ) -> None:
        """Call `on_difference` with each difference.  Nothing is read yet."""
        self._mirror = mirror
        self._request = request
        self._recheck = Recheck(mirror.paths.lock, on_difference)
        self._after_repair: dict[RelPath, int] = {}
        """The number of paths that still differ after a repair, by part."""
        self.tally = VerifyTotals()
        self.left = 0
        """The number of parts that were not verified because the time was over."""
        self.failed = 0
        """The number of parts that no process of the engine could compare."""
        self.unopened = ""
        """The reason why the digests seen on arrival cannot be read; empty if they can."""

    def run(self, *, wait: float) -> None:
        """Verify all jobs, or as many as the time allows; report differences, and record the parts.

        `wait` is the time in seconds to wait at the end for a run that changes the tree; after it
        the differences are reported nevertheless.  Sets `left`, `failed` and `unopened`.  Raises
        `DestinationError` if the tree seems unmounted, `NoSuchPathError` for an unknown path,
        `NotSyncedError` without an applied commit, and `EngineError`.
        """
        with (
            VerificationRecord(self._mirror.paths.verified) as record,
            Comparison.opened(
                self._mirror,
                self.tally,
                partial(_follow, record),
                content=self._request.content,
            ) as comparison,
        ):
            self.unopened = comparison.unopened
            queue, selection = Queue(record, self._request), comparison.now().selection
            if self._request.engine and queue.has_parts(selection):
                self._do_parts(comparison, record, queue)
            else:
                self._do_jobs(comparison, queue, queue.jobs(selection))
            self._recheck.settle_all(comparison.view, comparison.now, wait=wait)
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

    def _do_jobs(self, comparison: Comparison, queue: Queue, jobs: Iterable[VerifyJob]) -> None:
        """Do jobs one after the other, and record the progress, until the time is over."""
        deadline = self._request.deadline
        for job in jobs:
            began = queue.beginning(job)
            for segment in comparison.segments(job, began.position, deadline):
                reached = self._add(queue, job, began, segment)
                if segment.position is not None:
                    queue.record_position(job, reached)
                    if deadline.over:
                        self.left = queue.left()
                        return
                    self._recheck.settle(comparison.view, comparison.now)

    def _do_parts(self, comparison: Comparison, record: VerificationRecord, queue: Queue) -> None:
        """Let an engine compare the parts, and record them, until the time is over."""
        from huai_client.verify.part_tasks import MOST, started_engine  # loads multiprocessing

        began: dict[RelPath, Unfinished] = {}

        def add(tally: VerifyTotals, segments: list[tuple[RelPath, Segment]]) -> None:
            self.tally.add(tally)
            for path, segment in segments:
                self._add(queue, PartJob(path), began[path], segment)
            self._recheck.settle(comparison.view, comparison.now)

        with started_engine(self._mirror, self._request, add) as compare:
            while paths := queue.due(MOST):
                if self._request.deadline.over:
                    self.left = queue.left()
                    break
                began = {path: queue.beginning(PartJob(path)) for path in paths}
                failed = compare([(path, part.position) for path, part in began.items()])
                self.failed += len(failed)
                with record.writing():
                    for path in failed:
                        record.skip(path)
                comparison.now()  # a sync may have added parts

    def _add(self, queue: Queue, job: VerifyJob, began: Unfinished, segment: Segment) -> Unfinished:
        """Add the differences of a segment; record a completed job; return how far it is done."""
        self._recheck.add(job.path, segment.deviations, segment.stamp)
        damaged = began.damaged + self._recheck.counts[job.path]
        reached = began._replace(position=segment.position or b"", damaged=damaged)
        if segment.position is None:
            queue.record_completed(job, reached, segment.identity)
        return reached


def _follow(record: VerificationRecord, expected: ExpectedTree) -> None:
    """Adapt the record to the tree that is expected."""
    follow_selection(record, expected.applied, expected.selection)
