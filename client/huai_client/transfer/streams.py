"""Several streams over one queue of batches: every URL in turn, and what failed tried again.

There is one worker more than runs of rsync: while one verifies what came, its successor already
transfers.  Rules to keep: whatever ends a transfer, every rsync is stopped and waited for; files
leave a batch by a verdict of the staging area only, so that nothing that arrived is asked for
again, and all of it stays for the next run.
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
"""Tries of a batch before anything has come from anywhere: what is down then stays down."""
_REFUSED_MOST = 8
"""Names that are given up one by one before any run came to its end."""


class Failed(NamedTuple):
    """What did not arrive."""

    verdicts: list[tuple[File, Arrival]]
    late: list[File]
    """Time was up before it was their turn, or before they were whole."""


class Streams:
    """The streams of one transfer."""

    def __init__(self, shared: Shared) -> None:
        """Nothing runs yet."""
        self._shared = shared
        self._ended_well = False
        """Whether any run of rsync came to its end."""
        self._answered = False
        """True if any URL has sent anything at all."""
        self._said: frozenset[str] = frozenset()
        self._guard = threading.Lock()
        self._failed = Failed([], [])

    def run(self) -> Failed:
        """Transfer all batches; raises what ended the transfer early."""
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
        """One batch after the other, until none is left or the time is up."""
        shared = self._shared
        while (batch := self._next()) is not None:
            files, size = len(batch.open), sum(sizes(batch.open))
            try:
                parts = self._tried(batch, stream)
                shared.busy.admitted(stream)
                if shared.queue:  # else there is little left to do meanwhile
                    shared.staging.begin_to_write(files, size)
                self._put_back(*parts)
                if not parts:
                    self._conclude(batch)
            except UpstreamFullError as error:
                self._put_back(batch)  # another stream may have a connection, and take it over
                if not self._wait_for_turn(stream, error):
                    return
            except OutOfTimeError:
                self._put_back(batch)
                return

    def _tried(self, batch: Batch, stream: int) -> list[Batch]:
        """As `_ask_all`, tried again as long as that may help."""
        shared, options = self._shared, self._shared.options
        unanswered: list[TransferError] = []

        def ask() -> list[Batch]:
            try:
                return self._ask_all(batch, stream)
            except _UNANSWERED as error:
                unanswered.append(error)
                raise

        def pause(seconds: float) -> None:
            if len(unanswered) >= _UNANSWERED_MOST and not self._answered:
                raise unanswered[-1]
            shared.processes.pause(seconds)

        backoff = Backoff(options.retries, options.backoff, _RETRY_MAX)
        return retry(ask, TransientError, backoff, pause)

    def _ask_all(self, batch: Batch, stream: int) -> list[Batch]:
        """Ask every URL once, until one has answered with everything.

        Returns the parts of the batch that have to be asked for by themselves, since rsync gives
        up over some name.  Raises if every URL failed.
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
            raise slow[0]  # nobody else has what is left: it is asked again, and not left again
        if len(failures) == len(urls):
            raise min(failures, key=_severity)
        return []

    def _is_worth_saying(self, failure: TransferError, urls: int) -> bool:
        """Return False for what the end of the transfer says anyway, or was said before."""
        if self._answered:
            return True
        said, self._said = self._said, self._said | {failure.message}
        return urls > 1 and failure.message not in said

    def _is_of_names(self) -> bool:
        """Whether a refusal is about single names: else every one would be refused."""
        return self._ended_well or len(self._shared.refusals) < _REFUSED_MOST

    def _conclude(self, batch: Batch) -> None:
        with self._guard:
            self._failed.verdicts.extend(batch.verdicts)
        for file, verdict in batch.verdicts:
            self._shared.tally.given_up(file, verdict)

    def _next(self) -> Batch | None:
        shared = self._shared
        with self._guard:
            idle = not shared.queue or shared.processes.over or shared.processes.late
            return None if idle else shared.queue.popleft()

    def _put_back(self, *parts: Batch) -> None:
        with self._guard:
            self._shared.queue.extendleft(reversed(parts))

    def _wait_for_turn(self, stream: int, error: UpstreamFullError) -> bool:
        """Wait until `stream` may ask again; False if the time is up, raises without patience."""
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
    """How unlikely another attempt is to help: 0 is the most hopeful."""
    kinds = (UpstreamFullError, TransientError, TransferError)
    return [isinstance(failure, kind) for kind in kinds].index(True)
