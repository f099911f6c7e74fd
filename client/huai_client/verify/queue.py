"""The options of a run, the order of its jobs, and the record of the verified parts.

The record is written every few seconds.  Parts that were verified since are verified again after a
power failure.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from huai_client.diff.selection import Selection
from huai_client.run.options import NEVER, Deadline
from huai_client.state.verification import Unfinished, VerificationRecord
from huai_client.verify.jobs import PartJob, PathJob, SampleJob, VerifyJob
from huai_client.verify.parts import part_at
from huai_schema.paths import ROOT, RelPath, ancestors


class VerifyRequest(NamedTuple):
    """The scope and the method of a run."""

    content: bool = False
    """Read files too."""
    path: RelPath = ROOT
    """The path to verify, with everything below it."""
    sample: float | None = None
    """The share of the files to verify, from 0 to 1, picked at random."""
    seed: int = 0
    """The seed of `sample`, which picks the same files again."""
    deadline: Deadline = NEVER
    """The time to stop; a run with a deadline continues the part that an earlier one began."""
    repair: bool = False
    """Begin with the parts in which something differed."""
    engine: str = ""
    """The URL of the engine whose processes compare the parts; empty for this process."""

    @property
    def limited(self) -> bool:
        """True if the run may stop before all is verified."""
        return self.deadline != NEVER


_FLUSH_SECONDS = 2.0
_BATCH = 500
"""The number of parts to look up at a time."""


class Queue:
    """A queue of the jobs of one run."""

    def __init__(self, record: VerificationRecord, request: VerifyRequest) -> None:
        """Begin a run in `record`, which has to match the applied commit; the caller closes it."""
        self._record = record
        record.begin_run()
        self._request = request
        self._ended: list[tuple[Unfinished, bytes]] = []
        self._next_flush = time.monotonic() + _FLUSH_SECONDS
        self._before: dict[RelPath, int] = {}
        """The number of differing paths that an earlier run found, by the part that it began."""

    def has_parts(self, selection: Selection) -> bool:
        """Return True if the request asks for parts, not for a sample or a path in a part."""
        request = self._request
        return request.sample is None and part_at(selection, request.path) is not None

    def jobs(self, selection: Selection) -> Iterator[VerifyJob]:
        """Yield the jobs that the request asks for: a sample, a path, or parts, oldest first."""
        request = self._request
        if request.sample is not None:
            yield SampleJob(request.sample, request.seed)
        elif not self.has_parts(selection):
            yield PathJob(request.path)
        else:
            yield from self._parts()

    def _parts(self) -> Iterator[VerifyJob]:
        """Yield the part that an earlier run began, then the others, the oldest first."""
        interrupted = self._interrupted()
        if interrupted is not None:
            yield PartJob(interrupted.path)
        while paths := self.due():
            for path in paths:
                yield PartJob(path)

    def due(self, most: int = _BATCH) -> list[RelPath]:
        """Write pending results, and return at most `most` parts that are due."""
        self.flush()
        request = self._request
        return self._record.due(
            request.path, content=request.content, damaged_first=request.repair, most=most
        )

    def _interrupted(self) -> Unfinished | None:
        """Return the part that an earlier run began, if it is in the requested path; else None.

        None too for a run without a limit: it does all parts again.
        """
        part = self._record.unfinished(content=self._request.content)
        if part is None or not self._request.limited:
            return None
        return part if self._request.path in (part.path, *ancestors(part.path)) else None

    def beginning(self, job: VerifyJob) -> Unfinished:
        """Return the position at which to begin a job, and keep the damage found before it."""
        position = self._interrupted() if isinstance(job, PartJob) else None
        if position is None or position.path != job.path:
            position = Unfinished(job.path, int(time.time()), b"", 0)
        if isinstance(job, PartJob):
            self._before[job.path] = position.damaged
        return position

    def record_position(self, job: VerifyJob, at: Unfinished) -> None:
        """Record that a job was done as far as `at`; only the position in a part is recorded."""
        if isinstance(job, PartJob):
            with self._record.writing():
                self._record.record_position(at, content=self._request.content)

    def record_completed(self, job: VerifyJob, part: Unfinished, identity: bytes) -> None:
        """Note that a job was completed; only a part is recorded, with its compared `identity`.

        `flush` writes that, called here every two seconds.
        """
        if isinstance(job, PartJob):
            self._ended.append((part, identity))
        if time.monotonic() >= self._next_flush:
            self.flush()

    def flush(self) -> None:
        """Write the completed parts to the record."""
        ended, self._ended = self._ended, []
        if ended:
            with self._record.writing():
                for part, identity in ended:
                    self._record.record_finished(part, identity, content=self._request.content)
        self._next_flush = time.monotonic() + _FLUSH_SECONDS

    def correct(self, damaged: Mapping[RelPath, int]) -> None:
        """Record the number of differing paths, for each part in which any seemed to differ."""
        self.flush()
        with self._record.writing():
            for path in damaged.keys() & self._before.keys():
                self._record.record_damage(path, self._before[path] + damaged[path])

    def repaired(self, damaged: Iterable[RelPath]) -> dict[RelPath, int]:
        """Return how many paths an earlier run found to differ, by those of `damaged` it had begun.

        A repair by this run does not concern them.
        """
        return {path: self._before[path] for path in damaged if path in self._before}

    def left(self) -> int:
        """Flush, and return the number of parts not fully verified.

        It is 1 for a sample and for a path in a part.
        """
        self.flush()
        if self._request.sample is not None:
            return 1
        return self._record.left(self._request.path) or 1
