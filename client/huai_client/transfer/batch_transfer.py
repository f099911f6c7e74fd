"""Transfers one batch: every URL in turn, every failure that may pass tried again.

The rule to keep: files leave a batch by a verdict of the staging area only, so that
whatever fails, nothing that arrived is asked for again.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from huai_client.retry import Backoff, retry
from huai_client.transfer import rsync_arguments as command
from huai_client.transfer.confinement import domain
from huai_client.transfer.errors import (
    NameRefusedError,
    TransferError,
    TransientError,
    UpstreamFullError,
)
from huai_client.transfer.exit_status import classify_exit
from huai_client.transfer.limits import Admission, BusyBackoff, Grant, StallDetector
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.process_group import ProcessGroup
from huai_client.transfer.rsync import Bounds, RsyncProcess, require_rsync
from huai_client.transfer.sources import Sources
from huai_client.transfer.staging import Arrival, Staging
from huai_client.transfer.tally import Tally
from huai_client.transfer.urls import ContentUrl
from huai_schema.codec.publish_rules import VOLATILE_BYTES
from huai_schema.entries import File
from huai_schema.paths import RelPath

_RETRY_MAX = 60.0
_REFUSED_MOST = 8
"""Names that are given up one by one before any run came to its end."""
_NOT_READABLE = "permission denied at the upstream"


@dataclass(slots=True)
class Batch:
    """Files that travel together, and what is known of those that have not arrived."""

    open: list[File]
    verdicts: list[tuple[File, Arrival]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Context:
    """What all batches of a transfer share."""

    staging: Staging
    options: TransferOptions
    sources: Sources
    tally: Tally
    compare_dest: bytes
    lock: int
    """The handle of the staging area's lock."""
    refusals: dict[RelPath, str] = field(default_factory=dict)
    """Why files were not handed out, by path; of those that another URL has, too."""
    newer: dict[RelPath, File] = field(default_factory=dict)
    """Volatile files that are other ones than the metadata say, as they arrived."""


class BatchTransfer:
    """Used by all streams at once."""

    def __init__(
        self,
        context: Context,
        processes: ProcessGroup,
        busy: BusyBackoff,
        admission: Admission,
        queued: Callable[[], int],
    ) -> None:
        """`queued` says how many batches no stream has taken yet."""
        self._context = context
        self._processes = processes
        self._busy_backoff = busy
        self._admission = admission
        self._queued = queued
        self._ends_well = False
        """Whether any run came to its end."""

    def run(self, batch: Batch, stream: int) -> None:
        """Transfer `batch`; what is still open then did not arrive.

        Raises `UpstreamFullError` and `OutOfTimeError` at once, other errors when no attempt
        is left.
        """
        options = self._context.options
        backoff = Backoff(options.retries, options.backoff, _RETRY_MAX)
        attempt = partial(self._round, batch, stream)
        retry(attempt, TransientError, backoff, self._processes.pause)

    def _round(self, batch: Batch, stream: int) -> None:
        """Ask every URL once, until one has answered with everything."""
        sources = self._context.sources
        urls = sources.usable()
        failures: list[TransferError] = []
        for url in urls:
            try:
                self._ask(batch, stream, url)
            except TransferError as failure:
                failures.append(failure)
                if sources.failed(url, failure):
                    self._context.tally.retried(failure.message)
            else:
                sources.answered(url)
            if not batch.open:
                return
        if len(failures) == len(urls):
            raise min(failures, key=_severity)

    def _ask(self, batch: Batch, stream: int, url: ContentUrl) -> None:
        """Ask `url` once; where rsync gives up over some name, for ever smaller parts of it."""
        try:
            self._attempt(batch, stream, url)
        except NameRefusedError as failure:
            if not self._ends_well and len(self._context.refusals) >= _REFUSED_MOST:
                raise  # it is not the names
            if len(batch.open) > 1:
                self._ask_in_parts(batch, stream, url)
            elif batch.open:
                self._context.refusals[batch.open[0].path] = failure.reason
        else:
            self._ends_well = True

    def _ask_in_parts(self, batch: Batch, stream: int, url: ContentUrl) -> None:
        half = len(batch.open) // 2
        parts = [Batch(batch.open[:half]), Batch(batch.open[half:])]
        try:
            for part in parts:
                self._ask(part, stream, url)
        finally:
            batch.open = [file for part in parts for file in part.open]
            batch.verdicts = [verdict for part in parts for verdict in part.verdicts]

    def _attempt(self, batch: Batch, stream: int, url: ContentUrl) -> None:
        """One run of rsync, and the verdicts on what it brought."""
        context = self._context
        with self._admission.admit(url, self._queued, self._processes.pause) as grant:
            run, code = self._transfer(batch, stream, url, grant)
        context.tally.completed(stream, run.output.received)
        self._processes.check()
        failure = classify_exit(code, run.output, url)
        whole = failure is None and not run.output.unverified
        self._verify(batch, stream, cut=failure is not None, whole=whole)
        batch.verdicts = [
            (file, Arrival.MISMATCH if file.path in run.output.too_large else verdict)
            for file, verdict in batch.verdicts
        ]
        for path in run.output.denied_of(file.path for file in batch.open):
            context.refusals[path] = _NOT_READABLE
        if batch.open or failure:  # else only directories are left, which the next batch may use
            context.staging.salvage_partials(stream, {file.path: file for file in batch.open})
        if failure:
            self._processes.begin()  # at the deadline it was ended here, and did nothing wrong
            raise failure

    def _transfer(
        self, batch: Batch, stream: int, url: ContentUrl, grant: Grant
    ) -> tuple[RsyncProcess, int]:
        context = self._context
        context.staging.prepare(stream, batch.open)
        folder = context.staging.open_incoming(stream)
        try:
            options = context.options
            # rsync follows a symlink of ours on the way to its basis.
            safe = context.staging.may_compare(batch.open)
            compare_dest = context.compare_dest if safe else b""
            version = require_rsync(options.program)
            largest, total = command.most(self._size(file) for file in batch.open)
            confined = domain(url, options.program, options.extra, compare_dest, folder)
            start = partial(
                RsyncProcess,
                command.arguments(
                    options,
                    url,
                    compare_dest,
                    grant.bwlimit,
                    largest,
                    version,
                ),
                names=command.names(batch.open, url),
                folder=folder,
                locks=(context.lock, *grant.slots),
                stall=StallDetector(options.timeout),
                bounds=Bounds(largest, total, confined, url.own),
            )
            return self._processes.run(start, partial(self._in_flight, stream))
        finally:
            os.close(folder)

    def _size(self, file: File) -> int:
        """The most that may come for `file`."""
        volatile = file.path in self._context.options.volatile
        return max(file.size, VOLATILE_BYTES) if volatile else file.size

    def _in_flight(self, stream: int, size: int) -> None:
        if size:
            self._busy_backoff.admitted(stream)
        self._context.tally.in_flight(stream, size)

    def _verify(self, batch: Batch, stream: int, *, cut: bool, whole: bool) -> None:
        """Accept what fits; the rest of the batch stays open."""
        verdicts: list[tuple[File, Arrival]] = []
        for file in batch.open:
            self._processes.check()
            verdict = self._context.staging.accept(file, stream, cut=cut)
            if verdict is Arrival.MISMATCH and whole and self._is_newer(file, stream):
                verdict = Arrival.ARRIVED
            if verdict is Arrival.ARRIVED:
                self._context.tally.judged(file, verdict)
            else:
                verdicts.append((file, verdict))
        batch.open = [file for file, _ in verdicts]
        batch.verdicts = verdicts

    def _is_newer(self, file: File, stream: int) -> bool:
        if file.path not in self._context.options.volatile:
            return False
        arrived = self._context.staging.accept_newer(file, stream)
        if arrived is not None:
            self._context.newer[file.path] = arrived
        return arrived is not None


def _severity(failure: TransferError) -> int:
    """How unlikely another attempt is to help: 0 is the most hopeful."""
    kinds = (UpstreamFullError, TransientError, TransferError)
    return [isinstance(failure, kind) for kind in kinds].index(True)
