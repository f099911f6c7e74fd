"""One attempt at a batch at a path of this machine: the engine copies it, without rsync.

Files get the verdicts that they would get after rsync.  Nothing below the path is reached through a
symlink.
"""

import os
from collections.abc import Sequence
from enum import IntEnum

from huai_client.diff.files import chosen, joined, paths, sizes
from huai_client.staging import Arrival, Staging
from huai_client.transfer.batch import Batch
from huai_client.transfer.errors import TransferError, UpstreamRefusedError
from huai_client.transfer.options import concerns_connections
from huai_client.transfer.shared import NOT_READABLE, Shared
from huai_client.transfer.urls import ContentUrl, Transport
from huai_client.tree.handles import closing
from huai_native import _native
from huai_schema.codec.publish_rules import VOLATILE_BYTES
from huai_schema.entries import File

_KIBIBYTE = 1024


class EngineVerdict(IntEnum):
    """The engine's verdict on a file that it copies or takes from a bundle."""

    ARRIVED = 0
    MISSING = 1
    DIFFERENT = 2
    DENIED = 3
    """The file is not readable."""
    UNREACHED = 4
    """The call ended before, or the bundle leaves the file out."""
    FINISHED = 5
    """The file arrived with all its attributes."""
    WRONG = 6
    """The file has the right size and another digest."""


ARRIVALS: dict[int, Arrival] = {
    EngineVerdict.MISSING: Arrival.MISSING,
    EngineVerdict.DIFFERENT: Arrival.MISMATCH,
    EngineVerdict.DENIED: Arrival.MISSING,
    EngineVerdict.WRONG: Arrival.MISMATCH,
}
"""The outcome for files that did not arrive, and were reached."""
_ARRIVED = (EngineVerdict.ARRIVED, EngineVerdict.FINISHED)


def is_copied(url: ContentUrl, extra: Sequence[str]) -> bool:
    """Return True if the engine copies from `url`: `extra` has only options of connections."""
    return url.transport is Transport.LOCAL and concerns_connections(extra)


def copy_batch(shared: Shared, batch: Batch, url: ContentUrl, stream: int) -> TransferError | None:
    """Copy the open files of `batch` from `url`; return an error if it cannot be opened, or None.

    Files that arrived leave the batch, the others stay with their verdicts.  Raises
    `OutOfTimeError` at the deadline, and `OSError` if the local disk could not take the files.
    """
    processes, incoming = shared.processes, shared.staging.incoming
    with shared.admission.admit(url, processes.pause) as grant:
        processes.check_time()
        try:
            source = os.open(url.source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            return UpstreamRefusedError(
                f"{url}: {error.strerror}", hint="check the content URL and its access rules"
            )
        with closing(source):
            run = incoming.begin(())
            task = source, run, stream
            verdicts, failure = _copy_files(shared, batch.open, task, grant.bwlimit)
    arrived = take_over(shared.staging, run, batch.open, verdicts)
    shared.tally.completed(stream, sum(sizes(arrived)))
    _conclude(shared, batch, run, verdicts, arrived)
    if failure is not None:
        path, number = failure
        raise OSError(number, os.strerror(number), path)
    if batch.open:
        processes.check_time()  # raises at the deadline: some files were not reached
    return None


def _copy_files(
    shared: Shared, files: Sequence[File], task: tuple[int, int, int], rate: int
) -> tuple[bytes, tuple[bytes, int] | None]:
    """Copy files; return the engine's verdicts, and path and errno of an error of this disk.

    The error, None without one, ends the copying.
    `task`: a handle of the source, numbers of run and stream; `rate` in KiB/s, 0 for no limit.
    """
    source, run, stream = task
    processes, volatile, staging = shared.processes, shared.options.volatile, shared.staging

    def on_data(read: int) -> bool:
        shared.tally.in_flight(stream, read)
        return not (processes.over or processes.late)

    newer = {i: VOLATILE_BYTES for i, path in enumerate(paths(files)) if path in volatile}
    limits = rate * _KIBIBYTE, newer
    with staging.folders(run) as (folder, _):
        return _native.copy_files(files, (source, folder), limits, staging.finish, on_data)


def take_over(staging: Staging, run: int, files: Sequence[File], verdicts: bytes) -> Sequence[File]:
    """Record the files that arrived as ready, and return them in order.

    `verdicts` has a byte for each of `files`, or for the first ones.
    """
    if verdicts.count(EngineVerdict.FINISHED) == len(files):
        staging.keep(run, files, finished=files)
        return files
    finished = [
        position for position, verdict in enumerate(verdicts) if verdict == EngineVerdict.FINISHED
    ]
    positions = [position for position, verdict in enumerate(verdicts) if verdict in _ARRIVED]
    arrived = chosen(files, positions)
    staging.keep(run, arrived, finished=chosen(files, finished))
    return arrived


def _conclude(
    shared: Shared, batch: Batch, run: int, verdicts: bytes, arrived: Sequence[File]
) -> None:
    """Report the files that arrived; leave the others open in `batch`, with `verdicts`.

    Accepts newer volatile files from the folder of `run`.
    """
    incoming, volatile = shared.staging.incoming, shared.options.volatile
    rest = [
        (position, verdict) for position, verdict in enumerate(verdicts) if verdict not in _ARRIVED
    ]
    newer_files: list[File] = []
    batch.verdicts = []
    for position, verdict in rest:
        file = batch.open[position]
        if verdict == EngineVerdict.DENIED:
            shared.refusals[file.path] = NOT_READABLE
        newer = incoming.accept_newer(file, run) if file.path in volatile else None
        if newer is None:
            batch.verdicts.append((file, ARRIVALS.get(verdict, Arrival.MISSING)))
        else:
            shared.newer[file.path] = newer
            newer_files.append(file)
    shared.tally.arrived(joined(arrived, newer_files))
    batch.open = [file for file, _ in batch.verdicts]
    if any(file.path in volatile for file in batch.open):
        still_open = {file.path: file for file in batch.open}
        incoming.salvage(run, still_open)
