"""Several streams over one queue of batches.

There is one worker more than streams: while one verifies what came, its successor
already transfers.  The rule to keep: whatever ends a transfer, every rsync is stopped
and waited for, and what has arrived stays for the next run.
"""

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import NamedTuple

from huai_client.transfer.batch import batches
from huai_client.transfer.batch_transfer import Batch, BatchTransfer, Context
from huai_client.transfer.errors import OutOfTimeError, UpstreamFullError
from huai_client.transfer.limits import Admission, BusyBackoff
from huai_client.transfer.process_group import ProcessGroup
from huai_client.transfer.staging import Arrival
from huai_schema.entries import File

_FEW_FILES = 100
"""So many are not worth a connection of their own; more are spread evenly over the streams."""


class Failed(NamedTuple):
    """What did not arrive."""

    verdicts: list[tuple[File, Arrival]]
    late: list[File]
    """Time was up before it was their turn, or before they were whole."""


def transfer(files: Sequence[File], context: Context) -> Failed:
    """Bring `files`; returns those that did not arrive, raises what ended it early."""
    options = context.options
    even = max(_FEW_FILES, -(-len(files) // options.streams))
    max_files = min(options.batch_files, even)
    cut = batches(files, max_files=max_files, max_bytes=options.batch_bytes)
    return _Streams([Batch(batch) for batch in cut], context).run() if files else Failed([], [])


class _Streams:
    def __init__(self, queue: Sequence[Batch], context: Context) -> None:
        options = context.options
        self._queue = deque(queue)
        self._context = context
        self._processes = ProcessGroup(options.deadline)
        self._busy_backoff = BusyBackoff(options.patience, options.backoff)
        width = min(options.streams, len(queue))
        self._workers = min(width + 1, len(queue))
        admission = Admission(options, width, self._busy_backoff, context.tally)
        self._batch_transfer = BatchTransfer(
            context, self._processes, self._busy_backoff, admission, lambda: len(self._queue)
        )
        self._guard = threading.Lock()
        self._failed = Failed([], [])

    def run(self) -> Failed:
        with ThreadPoolExecutor(self._workers, thread_name_prefix="huai-stream") as pool:
            try:
                futures = [pool.submit(self._work, stream) for stream in range(self._workers)]
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                self._processes.stop()
                raise
        for batch in self._queue:
            self._failed.late.extend(batch.open)
        return self._failed

    def _work(self, stream: int) -> None:
        try:
            while (batch := self._next()) is not None:
                self._transfer_batch(batch, stream)
        except OutOfTimeError:
            return  # what is left is late

    def _transfer_batch(self, batch: Batch, stream: int) -> None:
        try:
            self._batch_transfer.run(batch, stream)
        except UpstreamFullError as error:
            self._put_back(batch)  # another stream may have a connection, and take it over
            self._wait_until_admitted(stream, error)
        except OutOfTimeError:
            self._put_back(batch)
            raise
        else:
            self._busy_backoff.admitted(stream)
            with self._guard:
                self._failed.verdicts.extend(batch.verdicts)
            for file, verdict in batch.verdicts:
                self._context.tally.judged(file, verdict)

    def _next(self) -> Batch | None:
        with self._guard:
            idle = not self._queue or self._processes.over or self._processes.late
            return None if idle else self._queue.popleft()

    def _put_back(self, batch: Batch) -> None:
        with self._guard:
            self._queue.appendleft(batch)

    def _wait_until_admitted(self, stream: int, error: UpstreamFullError) -> None:
        pause = self._busy_backoff.refused(stream)
        if pause is None:
            raise error
        self._context.tally.waiting(error.message)
        with self._busy_backoff.counted_as_waiting():
            self._processes.pause(pause)
