"""Verifying: going through the jobs, and being sure of what is told.

Holds no lock while it reads, so a sync is never kept waiting; what was seen while the tree was
being changed does not count and is looked at again.
Rule: a part is recorded as verified only when all of it was seen, with what seemed to differ.
"""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from huai_client.diff.findings import Difference, FoundDifference, Kind
from huai_client.diff.remains import check_destination
from huai_client.mirror import Mirror
from huai_client.state.verification import VerificationRecord
from huai_client.tree import View
from huai_client.tree.priority import idle_disk
from huai_client.verify.check import VerifyTotals, check_findings
from huai_client.verify.expected import ExpectedTree
from huai_client.verify.jobs import Job
from huai_client.verify.parts import follow_selection
from huai_client.verify.queue import Queue
from huai_client.verify.recheck import Recheck
from huai_client.verify.request import VerifyRequest
from huai_schema.errors import HuaiError

if TYPE_CHECKING:
    from huai_schema.paths import RelPath

_SLICE_SECONDS = 2.0
"""How often is looked whether what was seen counts."""


class _Segment(NamedTuple):
    """What was found from one mark to the next."""

    found: list[FoundDifference]
    position: bytes | None
    """The mark; None at the end of the job."""


class VerifyRun:
    """One run of `verify`; there is one at a time, as the caller sees to."""

    def __init__(
        self,
        mirror: Mirror,
        request: VerifyRequest,
        on_difference: Callable[[Difference], None],
    ) -> None:
        """`on_difference` is called with each difference.  Nothing is read yet."""
        self._mirror = mirror
        self._request = request
        self._recheck = Recheck(mirror.paths.lock, on_difference)
        self._expected: ExpectedTree | None = None
        self._next_mark = 0.0
        self._after_repair: dict[RelPath, int] = {}
        """Parts in which anything differed, and how many paths differ when that is repaired."""
        self.tally = VerifyTotals()
        self.left = 0
        """How many parts there still are to go through, because the time was over."""

    def run(self, *, wait: float) -> None:
        """Go through all of it, or as far as there is time.

        `wait`: how many seconds a run that changes the tree is given to end, before what
        differs is told all the same.
        """
        with (
            View(self._mirror.dest, owners=self._mirror.config.owners) as view,
            VerificationRecord(self._mirror.paths.verified) as record,
            idle_disk(),
        ):
            selection = self._now(record).selection
            check_destination(view, [selection])
            queue = Queue(record, self._request)
            for job in queue.jobs(selection):
                if not self._done(view, record, queue, job):
                    self.left = queue.left()
                    break
            self._recheck.settle_all(view, lambda: self._now(record), wait=wait)
            queue.correct(self._recheck.counts)
            self._after_repair = queue.repaired(self._recheck.counts)

    def repaired(self) -> None:
        """All that differed was brought back to what it should be."""
        with VerificationRecord(self._mirror.paths.verified) as record, record.writing():
            for path, paths in self._after_repair.items():
                record.damage(path, paths)

    def _now(self, record: VerificationRecord) -> ExpectedTree:
        """What the tree should be now."""
        if self._expected is None or not self._expected.holds():
            self._expected = ExpectedTree(self._mirror)
            follow_selection(record, self._expected.applied, self._expected.selection)
        return self._expected

    def _done(self, view: View, record: VerificationRecord, queue: Queue, job: Job) -> bool:
        """Do a job; False if the time was over before its end."""
        part = queue.beginning(job)
        before = part.damaged
        while True:
            expected = self._now(record)
            for segment in self._segments(view, expected, job, part.position):
                self._recheck.add(job.path, segment.found, expected)
                part = part._replace(damaged=before + self._recheck.counts[job.path])
                if segment.position is None:
                    queue.ended(job, part, expected.selection)
                    return True
                part = part._replace(position=segment.position)
                queue.paused(job, part)
                if self._request.deadline.over:
                    return False
                self._recheck.settle(view, lambda: self._now(record))

    def _segments(
        self, view: View, expected: ExpectedTree, job: Job, after: bytes
    ) -> Iterator[_Segment]:
        """The job from a mark on, as long as nothing is done to the tree."""
        try:
            for segment in self._read(view, expected, job, after):
                if not expected.holds():
                    return
                yield segment
        except HuaiError:
            # What is not applied any more may be gone from the repository too.
            if expected.holds():
                raise

    def _read(
        self, view: View, expected: ExpectedTree, job: Job, after: bytes
    ) -> Iterator[_Segment]:
        look = job.look(view, expected, after)
        content = self._request.content
        found: list[FoundDifference] = []
        for item in check_findings(
            view, look.findings, self.tally, content=content, pause=self._pauses
        ):
            if isinstance(item, FoundDifference):
                found.append(item)
                continue
            found += (
                FoundDifference(Difference(each.path, Kind.EXTRANEOUS))
                for each in look.extraneous()
            )
            yield _Segment(found, item.order)
            found = []
        yield _Segment(found, None)

    def _pauses(self) -> bool:
        """Whether it is time for a mark."""
        now = time.monotonic()
        if now < self._next_mark and not self._request.deadline.over:
            return False
        self._next_mark = now + _SLICE_SECONDS
        return True
