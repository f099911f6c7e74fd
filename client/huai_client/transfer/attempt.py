"""One attempt at a batch: one run of rsync at one URL, and the check of the files that arrived."""

import os

from huai_client.transfer import rsync_arguments as command
from huai_client.transfer.batch import Batch
from huai_client.transfer.confinement import domain
from huai_client.transfer.errors import TransferError
from huai_client.transfer.exit_status import classify_exit
from huai_client.transfer.limits import Grant, StallDetector
from huai_client.transfer.rsync import Bounds, RsyncProcess, require_rsync
from huai_client.transfer.shared import Shared
from huai_client.transfer.staging import Arrival
from huai_client.transfer.urls import ContentUrl
from huai_schema.codec.publish_rules import VOLATILE_BYTES
from huai_schema.entries import File

_NOT_READABLE = "permission denied at the upstream"


def attempt(shared: Shared, batch: Batch, url: ContentUrl, stream: int) -> TransferError | None:
    """Ask `url` for the open files of `batch`; returns the error of rsync, None if it succeeded.

    Files that arrived leave the batch in both cases.  Raises `OutOfTimeError` at the deadline, and
    `LocalWriteError` if the local disk could not take the files.
    """
    processes, tally = shared.processes, shared.tally

    def heard(size: int) -> None:
        if size:
            shared.busy.admitted(stream)
        tally.in_flight(stream, size)
        if processes.late:
            run.stop()  # it keeps what it has of the file in flight

    with (
        shared.admission.admit(url, processes.pause) as grant,
        processes.running(_start(shared, batch, url, stream, grant)) as run,
    ):
        code = run.wait(heard)
    tally.completed(stream, run.output.received)
    processes.check()
    failure = classify_exit(code, run.output, url)
    whole = failure is None and not run.output.unverified
    _verify(shared, batch, stream, cut=failure is not None, whole=whole)
    batch.verdicts = [
        (file, Arrival.MISMATCH if file.path in run.output.too_large else verdict)
        for file, verdict in batch.verdicts
    ]
    for path in run.output.denied_of(file.path for file in batch.open):
        shared.refusals[path] = _NOT_READABLE
    if batch.open or failure:  # else only directories are left, which the next batch may use
        shared.staging.salvage_partials(stream, {file.path: file for file in batch.open})
    if failure is None:
        return None
    processes.begin()  # at the deadline it was ended here, and did nothing wrong
    if not isinstance(failure, TransferError):
        raise failure  # this machine's disk: no other URL helps
    return failure


def _start(
    shared: Shared, batch: Batch, url: ContentUrl, stream: int, grant: Grant
) -> RsyncProcess:
    """Start rsync in the stream's folder of the staging area."""
    shared.processes.begin()
    staging, options = shared.staging, shared.options
    staging.prepare(stream, batch.open)
    folder = staging.open_incoming(stream)
    try:
        # rsync follows symlinks of the local tree on the way to its basis.
        compare_dest = shared.compare_dest if staging.may_compare(batch.open) else b""
        version = require_rsync(options.program)
        largest, total = command.most(_size_limit(shared, file) for file in batch.open)
        confined = domain(url, options.program, options.extra, compare_dest, folder)
        return RsyncProcess(
            command.arguments(options, url, compare_dest, grant.bwlimit, largest, version),
            names=command.names(batch.open, url),
            folder=folder,
            locks=(shared.lock, *grant.slots),
            stall=StallDetector(options.timeout),
            bounds=Bounds(largest, total, confined, url.own),
        )
    finally:
        os.close(folder)


def _size_limit(shared: Shared, file: File) -> int:
    """The largest size that is accepted for `file`, in bytes."""
    volatile = file.path in shared.options.volatile
    return max(file.size, VOLATILE_BYTES) if volatile else file.size


def _verify(shared: Shared, batch: Batch, stream: int, *, cut: bool, whole: bool) -> None:
    """Accept the arrived files that match their metadata; the others stay open."""
    verdicts: list[tuple[File, Arrival]] = []
    for file in batch.open:
        shared.processes.check()
        verdict = shared.staging.accept(file, stream, cut=cut)
        if verdict is Arrival.MISMATCH and whole and _is_newer(shared, file, stream):
            verdict = Arrival.ARRIVED
        if verdict is Arrival.ARRIVED:
            shared.tally.judged(file, verdict)
        else:
            verdicts.append((file, verdict))
    batch.open = [file for file, _ in verdicts]
    batch.verdicts = verdicts


def _is_newer(shared: Shared, file: File, stream: int) -> bool:
    """Accept a volatile file as it arrived, if it may be published for `file`."""
    if file.path not in shared.options.volatile:
        return False
    arrived = shared.staging.accept_newer(file, stream)
    if arrived is not None:
        shared.newer[file.path] = arrived
    return arrived is not None
