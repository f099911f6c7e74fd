"""Several streams over one queue of batches: every URL in turn, with retries.

There is one worker more than runs of rsync: while one verifies arrived files, the next already
transfers.  Rules: however a transfer ends, every rsync is stopped and waited for; files leave a
batch by a verdict of the staging area only, so that no arrived file is requested again, and all of
them stay for the next run.
"""

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import NamedTuple

from huai_client.diff.files import sizes
from huai_client.run.retry import Backoff, retry
from huai_client.staging import Arrival
from huai_client.transfer.attempt import attempt
from huai_client.transfer.batch import Batch
from huai_client.transfer.errors import (
    NameRefusedError,
    OutOfTimeError,
    SlowerError,
    TransferError,
    TransientError,
    UnansweredError,
    UnreachableError,
    UpstreamFullError,
)
from huai_client.transfer.shared import Shared
from huai_schema.entries import File

_RETRY_MAX = 60.0
_UNANSWERED = (UnreachableError, UnansweredError)
_UNANSWERED_MOST = 2
"""Attempts at a batch before any URL has sent anything: then all stay down."""
_REFUSED_MOST = 8
"""Names that are given up one by one before any run ended normally."""


class FailedFiles(NamedTuple):
    """The files that did not arrive."""

    verdicts: list[tuple[File, Arrival]]
    late: list[File]
    """The deadline passed before their turn, or before they were complete."""


class Streams:
    """The streams of one transfer."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._ended_well = False
        """True if any run of rsync ended normally."""
        self._answered = False
        """True if any URL has sent anything at all."""
        self._reported: frozenset[str] = frozenset()
        self._guard = threading.Lock()
        self._failed = FailedFiles([], [])

    def run(self) -> FailedFiles:
        """Transfer all batches; return the files that did not arrive.

        Raises the error that ended the transfer early, after all runs were stopped.
        """
        shared = self._shared
        workers = min(shared.width + 1, max(1, len(shared.queue)))
        with ThreadPoolExecutor(workers, thread_name_prefix="huai-stream") as pool:
            try:
                futures = [pool.submit(self._work, stream) for stream in range(workers)]
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                shared.processes.stop()
                raise
        for batch in shared.queue:
            self._failed.late.extend(batch.open)
        return self._failed

    def _work(self, stream: int) -> None:
        """Transfer batch after batch until none is left or the deadline; wait if it is full."""
        shared = self._shared
        while (batch := self._next_batch()) is not None:
            files, size = len(batch.open), sum(sizes(batch.open))
            try:
                parts = self._try_repeatedly(batch, stream)
                shared.busy.admitted(stream)
                if shared.queue:  # else there is little left to overlap with
                    shared.staging.begin_to_write(files, size)
                self._put_back(*parts)
                if not parts:
                    self._conclude(batch)
            except UpstreamFullError as error:
                self._put_back(batch)  # a stream with a connection may take it over
                if not self._wait_for_turn(stream, error):
                    return
            except OutOfTimeError:
                self._put_back(batch)
                return

    def _try_repeatedly(self, batch: Batch, stream: int) -> list[Batch]:
        """Try all URLs, again after transient errors as `retries` permit; returns as `_try_urls`.

        Raises as that does; sooner if no URL has ever answered.
        """
        shared, options = self._shared, self._shared.options
        unanswered: list[TransferError] = []

        def ask() -> list[Batch]:
            """Return the result of `_try_urls`; notes the error if no URL answers."""
            try:
                return self._try_urls(batch, stream)
            except _UNANSWERED as error:
                unanswered.append(error)
                raise

        def pause(seconds: float) -> None:
            """Wait; raise the last error if no URL ever answered."""
            if len(unanswered) >= _UNANSWERED_MOST and not self._answered:
                raise unanswered[-1]
            shared.processes.pause(seconds)

        backoff = Backoff(options.retries, options.backoff, _RETRY_MAX)
        return retry(ask, TransientError, backoff, pause)

    def _try_urls(self, batch: Batch, stream: int) -> list[Batch]:
        """Request the batch from each URL once, until it is complete.

        Returns the parts of the batch that have to be requested separately, since rsync gives up
        over some name; mostly none.  Raises a `TransferError` if every URL failed, or if the rest
        is only at one that was left as slow.
        """
        shared, sources = self._shared, self._shared.sources
        failures: list[TransferError] = []
        urls = sources.turn(sum(sizes(batch.open)) + len(batch.open))
        for url in urls:
            failure = attempt(shared, batch, url, stream)
            if failure is None:
                self._ended_well = self._answered = True
            elif isinstance(failure, NameRefusedError) and self._is_of_names():
                if len(batch.open) > 1:
                    return batch.halves()
                shared.refusals.update((file.path, failure.reason) for file in batch.open)
                failure = None
            if failure is None:
                sources.answered(url)
            else:
                failures.append(failure)
                self._answered = self._answered or not isinstance(failure, _UNANSWERED)
                if sources.failed(url, failure) and self._is_worth_saying(failure, len(urls)):
                    shared.tally.retried(failure.message)
            if not batch.open:
                return []
        slow = [failure for failure in failures if isinstance(failure, SlowerError)]
        if slow and len(failures) < len(urls):
            raise slow[0]  # no other URL has the rest: this one is tried again, and not left again
        if len(failures) == len(urls):
            raise min(failures, key=_severity)
        return []

    def _is_worth_saying(self, failure: TransferError, urls: int) -> bool:
        """Return False for a failure that the end of the transfer reports, or that was reported.

        Records the failure as reported.
        """
        if self._answered:
            return True
        reported, self._reported = self._reported, self._reported | {failure.message}
        return urls > 1 and failure.message not in reported

    def _is_of_names(self) -> bool:
        """Return True if a refusal is about single names: else every one would be refused."""
        return self._ended_well or len(self._shared.refusals) < _REFUSED_MOST

    def _conclude(self, batch: Batch) -> None:
        """Report the files of a batch that are given up."""
        with self._guard:
            self._failed.verdicts.extend(batch.verdicts)
        for file, verdict in batch.verdicts:
            self._shared.tally.given_up(file, verdict)

    def _next_batch(self) -> Batch | None:
        """Remove a batch from the queue; None if it is empty or the time is over."""
        shared = self._shared
        with self._guard:
            idle = not shared.queue or shared.processes.over or shared.processes.late
            return None if idle else shared.queue.popleft()

    def _put_back(self, *parts: Batch) -> None:
        """Put batches at the front of the queue."""
        with self._guard:
            self._shared.queue.extendleft(reversed(parts))

    def _wait_for_turn(self, stream: int, error: UpstreamFullError) -> bool:
        """Wait until `stream` may retry; return False at the deadline.

        Raises `error` if the upstream has admitted no stream for too long.
        """
        shared = self._shared
        pause = shared.busy.refused(stream, error.retry_after)
        if pause is None:
            raise error
        shared.tally.waiting(error.message)
        with shared.busy.counted_as_waiting():
            try:
                shared.processes.pause(pause)
            except OutOfTimeError:
                return False
        return True


def _severity(failure: TransferError) -> int:
    """Return how unlikely another attempt is to help: 0 is the most hopeful."""
    kinds = (UpstreamFullError, TransientError, TransferError)
    return [isinstance(failure, kind) for kind in kinds].index(True)
