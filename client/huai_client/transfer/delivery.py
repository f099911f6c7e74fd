"""Brings one batch: every URL in turn, every failure that may pass tried again.

The rule to keep: files leave a batch by a verdict of the staging area only, so that
whatever fails, nothing that arrived is asked for again.
"""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from huai_client.staging import Staging, Verdict
from huai_client.transfer import command
from huai_client.transfer.errors import (
    TransferError,
    TransientError,
    UpstreamFullError,
    UpstreamRefusedError,
)
from huai_client.transfer.judgement import judge
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.process import Run
from huai_client.transfer.runs import Runs
from huai_client.transfer.sources import Sources
from huai_client.transfer.tally import Tally
from huai_client.transfer.urls import ContentUrl
from huai_schema.entries import File

_RETRY_MAX = 60.0


@dataclass(slots=True)
class Batch:
    """Files that travel together, and what is known of those that have not arrived."""

    open: list[File]
    verdicts: list[tuple[File, Verdict]] = field(default_factory=list)
    waits: int = 0
    """How often it stood in line."""
    waited: float = 0.0
    """Seconds it stood in line."""


@dataclass(frozen=True, slots=True)
class Context:
    """What all deliveries of a transfer share."""

    staging: Staging
    options: TransferOptions
    sources: Sources
    tally: Tally
    compare_dest: bytes
    lock: int
    """The handle of the staging area's lock."""


class Delivery:
    """Used by all streams at once."""

    def __init__(self, context: Context, runs: Runs, width: int) -> None:
        """At most `width` rsyncs run at a time and share the bandwidth."""
        self._context = context
        self._runs = runs
        self._width = width
        self._slots = threading.Semaphore(width)

    def bring(self, batch: Batch, stream: int) -> None:
        """Transfer `batch`; what is still open then did not arrive.

        Raises `UpstreamFullError` at once, other errors when no attempt is left.
        """
        import tenacity

        options = self._context.options
        attempts = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(options.retries + 1),
            wait=tenacity.wait_exponential(options.backoff, max=_RETRY_MAX)
            + tenacity.wait_random(0, options.backoff),
            retry=tenacity.retry_if_exception_type(TransientError),
            sleep=self._runs.pause,
            reraise=True,
        )
        attempts(self._round, batch, stream)

    def _round(self, batch: Batch, stream: int) -> None:
        """Ask every URL once, until one has answered with everything."""
        sources = self._context.sources
        failures: list[TransferError] = []
        answered = False
        for url in sources.usable():
            try:
                self._attempt(batch, stream, url)
                answered = True
            except UpstreamRefusedError as error:
                failures.append(error)
                sources.drop(url, error)
            except (TransientError, UpstreamFullError) as error:
                failures.append(error)
                sources.demote(url)
            if not batch.open:
                return
        if not answered:
            self._give_up(failures)

    def _give_up(self, failures: Sequence[TransferError]) -> None:
        """Raise the failure that leaves most hope."""
        hope = (UpstreamFullError, TransientError, TransferError)
        error = min(
            failures, key=lambda failure: [isinstance(failure, kind) for kind in hope].index(True)
        )
        if isinstance(error, TransientError):
            self._context.tally.retried(error.message)
        raise error

    def _attempt(self, batch: Batch, stream: int, url: ContentUrl) -> None:
        """One run of rsync, and the verdicts on what it brought."""
        context = self._context
        with self._slots:
            run, code = self._transfer(batch, stream, url)
        context.tally.landed(stream, run.talk.received)
        self._runs.check()
        failure = judge(code, run.talk, url)
        self._verify(batch, stream, cut=failure is not None)
        if batch.open or failure:  # else only directories are left, which the next batch may use
            context.staging.settle(stream, {file.path for file in batch.open})
        if failure:
            raise failure

    def _transfer(self, batch: Batch, stream: int, url: ContentUrl) -> tuple[Run, int]:
        context = self._context
        context.staging.prepare(stream, batch.open)
        folder = context.staging.open_incoming(stream)
        try:
            start = partial(
                Run,
                command.arguments(context.options, url, context.compare_dest, self._width),
                names=command.names(batch.open),
                folder=folder,
                lock=context.lock,
            )
            return self._runs.carry_out(start, partial(context.tally.flying, stream))
        finally:
            os.close(folder)

    def _verify(self, batch: Batch, stream: int, *, cut: bool) -> None:
        """Accept what fits; the rest of the batch stays open."""
        verdicts: list[tuple[File, Verdict]] = []
        for file in batch.open:
            self._runs.check()
            verdict = self._context.staging.accept(file, stream, cut=cut)
            if verdict is Verdict.ARRIVED:
                self._context.tally.judged(file, verdict)
            else:
                verdicts.append((file, verdict))
        batch.open = [file for file, _ in verdicts]
        batch.verdicts = verdicts
