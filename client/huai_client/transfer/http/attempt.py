"""One attempt at a batch over HTTP.

Files get the verdicts that rsync would bring them.  Rule to keep: as with rsync, what arrived
leaves the batch and what has begun stays for the next attempt, however this one ends.
"""

import os
import time
from collections.abc import Callable

from huai_client.diff.files import sizes
from huai_client.staging import Arrival
from huai_client.transfer.batch import Batch
from huai_client.transfer.errors import (
    OutOfTimeError,
    SlowerError,
    TransferError,
    UnansweredError,
    UpstreamFullError,
    UpstreamSilentError,
)
from huai_client.transfer.http.arrivals import Arrivals
from huai_client.transfer.http.connect import connections_to
from huai_client.transfer.http.targets import Folders
from huai_client.transfer.limits import Grant, StallDetector, answer_seconds
from huai_client.transfer.pace import Pace
from huai_client.transfer.ranking import note_speed
from huai_client.transfer.shared import Shared
from huai_client.transfer.urls import ContentUrl

_AGAIN = "sync again: files that have arrived are kept"
_UNANSWERED = "check that its server is well; it accepts connections, and sends nothing"


def http_batch(shared: Shared, batch: Batch, url: ContentUrl, stream: int) -> TransferError | None:
    """Ask `url` for the open files of `batch`; returns the error, None if it succeeded.

    Files that arrived leave the batch.  Raises `OutOfTimeError` at the deadline, and `OSError` if
    the local disk could not take the files.
    """
    processes, incoming = shared.processes, shared.staging.incoming
    run, beginnings = incoming.resume(batch.open)
    top = incoming.open(run)
    try:
        with Folders(top) as folders:
            arrivals = Arrivals(shared, url, batch.open, (run, folders, beginnings))
            with arrivals, shared.admission.admit(url, processes.pause) as grant:
                processes.begin()
                asked = url, sum(sizes(batch.open)) - sum(beginnings.values())
                failure = _ask(shared, arrivals, asked, stream, grant)
            processes.check()
            try:
                arrivals.verify()
            except TransferError as error:
                failure = failure or error
    finally:
        os.close(top)
    _conclude(shared, batch, run, arrivals)
    processes.begin()  # at the deadline it was ended here, and did nothing wrong
    return failure


def _ask(
    shared: Shared, arrivals: Arrivals, asked: tuple[ContentUrl, int], stream: int, grant: Grant
) -> TransferError | None:
    """All requests, until the end; what ended them early.

    `asked`: the URL, and the bytes that have to come.
    """
    hosts, (url, size) = shared.options.hosts, asked
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
        shared.tally.completed(stream, connections.received)
        came, took = connections.received, time.monotonic() - began
        shared.sources.measured(url, came, took)
        note_speed(url, hosts, came, took, connections.first_byte)
    if isinstance(failure, UpstreamFullError):
        hosts.fewer_requests(url.service)
    return failure


def _watch(
    shared: Shared, arrivals: Arrivals, asked: tuple[ContentUrl, int], stream: int, grant: Grant
) -> Callable[[int], None]:
    """What is looked at every tick."""
    url, size = asked
    pace = Pace(shared.sources, url, size, shared.options.timeout)
    timeout = shared.options.timeout
    stall, unanswered = StallDetector(timeout), StallDetector(answer_seconds(timeout))
    told = 0

    def watch(received: int) -> None:
        nonlocal told
        shared.processes.begin()
        if len(arrivals.here) > told:
            told = len(arrivals.here)
            shared.busy.admitted(stream)
        shared.tally.in_flight(stream, max(0, received - arrivals.size))
        if not received and unanswered.stalled(lambda: received):
            raise UnansweredError(f"{url}: does not answer", hint=_UNANSWERED)
        if pace.is_too_slow(received, lambda: received, grant.bwlimit):
            raise SlowerError(f"{url}: sends too slowly", hint=_AGAIN)
        if stall.stalled(lambda: received):
            raise UpstreamSilentError(f"{url}: sends too slowly", hint=_AGAIN)

    return watch


def _conclude(shared: Shared, batch: Batch, run: int, arrivals: Arrivals) -> None:
    """The other files stay open, with what became of them."""
    others = [file for file in batch.open if file.path not in arrivals.here]
    batch.verdicts = [(file, arrivals.verdicts.get(file.path, Arrival.MISSING)) for file in others]
    batch.open = others
    if others:
        shared.staging.incoming.salvage(run, {file.path: file for file in others})
