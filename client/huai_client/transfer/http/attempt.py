"""One attempt at a batch over HTTP.

Files get the verdicts that they would get after rsync.  Rule: as with rsync, arrived files leave
the batch and partial files stay for the next attempt, however this one ends.
"""

import time
from collections.abc import Callable
from typing import Protocol

from huai_client.diff.files import sizes
from huai_client.staging import Arrival
from huai_client.transfer.batch import Batch
from huai_client.transfer.errors import (
    RETRY_HINT,
    OutOfTimeError,
    SlowerError,
    TransferError,
    UnansweredError,
    UpstreamFullError,
    UpstreamSilentError,
)
from huai_client.transfer.http.arrivals import Arrivals
from huai_client.transfer.http.connections import Work, connections_to
from huai_client.transfer.http.job import Folders
from huai_client.transfer.limits import Grant, StallDetector, answer_seconds
from huai_client.transfer.shared import Shared
from huai_client.transfer.sources import Pace, note_speed
from huai_client.transfer.urls import ContentUrl

_UNANSWERED = "check the server of that URL: it accepts connections and sends nothing"


def http_batch(shared: Shared, batch: Batch, url: ContentUrl, stream: int) -> TransferError | None:
    """Request the open files of `batch` from `url`; return the error, or None if it ran to its end.

    Files that arrived leave the batch, missing ones stay with their verdicts.  Raises
    `OutOfTimeError` at the deadline, and `OSError` if the local disk could not take the files.
    """
    processes, incoming = shared.processes, shared.staging.incoming
    run, beginnings = incoming.resume(batch.open)
    with incoming.opened(run) as top, Folders(top) as folders:
        arrivals = Arrivals(shared, url, batch.open, (stream, run, folders, beginnings))
        with arrivals, shared.admission.admit(url, processes.pause) as grant:
            processes.check_time()
            task = url, sum(sizes(batch.open)) - sum(beginnings.values())
            failure = run_requests(shared, arrivals, task, stream, grant)
        processes.check()
        try:
            arrivals.verify()
        except TransferError as error:
            failure = failure or error
    _conclude(shared, batch, run, arrivals)
    processes.check_time()  # at the deadline it was stopped here, and is not to blame
    return failure


class CountedWork(Work, Protocol):
    """Work that counts its results."""

    @property
    def files(self) -> int:
        """The number of files with a result."""

    @property
    def size(self) -> int:
        """The bytes of the files that were reported as arrived."""


def run_requests(
    shared: Shared, arrivals: CountedWork, task: tuple[ContentUrl, int], stream: int, grant: Grant
) -> TransferError | None:
    """Send all requests; return the error that ended them early, or None; record the speed.

    None at the deadline as well: the caller checks the time.  A server that is full gets fewer
    requests at a time from now on.  `task`: the URL, and the number of bytes to receive.
    """
    hosts, (url, size) = shared.options.hosts, task
    with connections_to(url, shared.options, grant) as connections:
        began = time.monotonic()
        try:
            failure = connections.run(
                arrivals, _watch(shared, arrivals, (url, size), stream, grant)
            )
        except TransferError as error:
            failure = error
        except OutOfTimeError:
            failure = None
        shared.tally.completed(stream, connections.traffic.received)
        received, took = connections.traffic.received, time.monotonic() - began
        shared.sources.measured(url, received, took)
        note_speed(url, hosts, received, took, connections.traffic.first_byte)
    if isinstance(failure, UpstreamFullError):
        hosts.fewer_requests(url.service)
    return failure


def _watch(
    shared: Shared, arrivals: CountedWork, task: tuple[ContentUrl, int], stream: int, grant: Grant
) -> Callable[[int], None]:
    """Return the function to call at each tick, with the number of bytes received.

    It reports progress, and raises if the server is silent or too slow, or the time is over.
    `task`: see `run_requests`.
    """
    url, size = task
    pace = Pace(shared.sources, url, size, shared.options.timeout)
    timeout = shared.options.timeout
    stall, unanswered = StallDetector(timeout), StallDetector(answer_seconds(timeout))
    counted = 0

    def watch(received: int) -> None:
        """Report progress; raise a `TransferError` if the server is silent or too slow."""
        nonlocal counted
        shared.processes.check_time()
        if arrivals.files > counted:
            counted = arrivals.files
            shared.busy.admitted(stream)
        shared.tally.in_flight(stream, max(0, received - arrivals.size))
        if not received and unanswered.stalled(lambda: received):
            raise UnansweredError(f"{url}: does not answer", hint=_UNANSWERED)
        if pace.is_too_slow(received, lambda: received, grant.bwlimit):
            raise SlowerError(f"{url}: sends too slowly", hint=RETRY_HINT)
        if stall.stalled(lambda: received):
            raise UpstreamSilentError(f"{url}: sends too slowly", hint=RETRY_HINT)

    return watch


def _conclude(shared: Shared, batch: Batch, run: int, arrivals: Arrivals) -> None:
    """Take the arrived files out of the batch; keep the beginnings of the others."""
    rest = [file for file in batch.open if file.path not in arrivals.arrived_paths]
    batch.verdicts = [(file, arrivals.verdicts.get(file.path, Arrival.MISSING)) for file in rest]
    batch.open = rest
    if rest:
        shared.staging.incoming.salvage(run, {file.path: file for file in rest})
