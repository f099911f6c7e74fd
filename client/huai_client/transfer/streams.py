"""Several streams over one queue of batches.

There is one worker more than streams: while one verifies what came, its successor
already transfers.  The rule to keep: whatever ends a transfer, every rsync is stopped
and waited for, and what has arrived stays for the next run.
"""

import random
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from huai_client.batch import batches
from huai_client.staging import Verdict
from huai_client.transfer.delivery import Batch, Context, Delivery
from huai_client.transfer.errors import UpstreamFullError
from huai_client.transfer.runs import Runs
from huai_schema.entries import File

_FEW_FILES = 100
"""So many are not worth a connection of their own; more are spread evenly over the streams."""
_WAIT_MAX = 30.0
_DOUBLINGS = 10


def transfer(files: Sequence[File], context: Context) -> list[tuple[File, Verdict]]:
    """Bring `files`; returns those that did not arrive, raises what ended it early."""
    options = context.options
    even = max(_FEW_FILES, -(-len(files) // options.streams))
    max_files = min(options.batch_files, even)
    cut = batches(files, max_files=max_files, max_bytes=options.batch_bytes)
    return _Streams([Batch(batch) for batch in cut], context).run() if files else []


class _Streams:
    def __init__(self, queue: Sequence[Batch], context: Context) -> None:
        self._queue = deque(queue)
        self._context = context
        self._runs = Runs()
        width = min(context.options.streams, len(queue))
        self._workers = min(width + 1, len(queue))
        self._delivery = Delivery(context, self._runs, width)
        self._guard = threading.Lock()
        self._failed: list[tuple[File, Verdict]] = []

    def run(self) -> list[tuple[File, Verdict]]:
        with ThreadPoolExecutor(self._workers, thread_name_prefix="huai-stream") as pool:
            try:
                futures = [pool.submit(self._work, stream) for stream in range(self._workers)]
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                self._runs.stop()
                raise
        return self._failed

    def _work(self, stream: int) -> None:
        while (batch := self._next()) is not None:
            try:
                self._delivery.bring(batch, stream)
            except UpstreamFullError as error:
                with self._guard:  # another stream may have a connection, and take it over
                    self._queue.appendleft(batch)
                self._stand_in_line(batch, error)
            else:
                with self._guard:
                    self._failed += batch.verdicts
                for file, verdict in batch.verdicts:
                    self._context.tally.judged(file, verdict)

    def _next(self) -> Batch | None:
        with self._guard:
            return self._queue.popleft() if self._queue and not self._runs.over else None

    def _stand_in_line(self, batch: Batch, error: UpstreamFullError) -> None:
        options = self._context.options
        if batch.waited >= options.patience:
            raise error
        longest = min(_WAIT_MAX, options.backoff * 2 ** min(batch.waits, _DOUBLINGS))
        pause = longest * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load, hides nothing
        batch.waits += 1
        batch.waited += pause
        self._context.tally.waiting(error.message)
        self._runs.pause(pause)
