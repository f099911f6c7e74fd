"""One attempt at a batch: one run of rsync at one URL, and the check of the files that arrived.

A local path needs no rsync (`copy`), nor does a web server (`http`).
"""

import time
from collections.abc import Iterator, Sequence

from huai_client.config.allowed_addresses import HINT
from huai_client.config.proxies import rsync_proxy
from huai_client.diff.files import joined, paths, sizes
from huai_client.staging import Arrival, by_arrival
from huai_client.transfer.batch import Batch
from huai_client.transfer.copy import copy_batch, is_copied
from huai_client.transfer.errors import (
    RETRY_HINT,
    DroppedError,
    OptionRefusedError,
    SlowerError,
    TransferError,
    UpstreamRefusedError,
)
from huai_client.transfer.limits import Grant, StallDetector
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.rsync import arguments as command
from huai_client.transfer.rsync.confinement import domain
from huai_client.transfer.rsync.exit_status import classify_exit
from huai_client.transfer.rsync.run import Bounds, RsyncProcess, require_rsync
from huai_client.transfer.shared import NOT_READABLE, Shared
from huai_client.transfer.sources import Pace, note_speed
from huai_client.transfer.urls import ContentUrl, Transport
from huai_schema.codec.publish_rules import VOLATILE_BYTES
from huai_schema.entries import File
from huai_schema.errors import HuaiError


def needs_rsync(url: ContentUrl, extra: Sequence[str]) -> bool:
    """Return True if rsync is run for `url`; `extra`: the administrator's options for it."""
    return url.transport is not Transport.HTTP and not is_copied(url, extra)


def refusal_of(url: ContentUrl, options: TransferOptions) -> UpstreamRefusedError | None:
    """Return an error if `url` is at an internal address that is not permitted, else None.

    None for the administrator's own URLs, and through a proxy.  rsync resolves the name again: a
    change of its addresses in between is not detected.
    """
    if url.own or options.allowed_addresses is None or rsync_proxy():
        return None
    refusal = options.allowed_addresses.refusal_of_host(url.host.strip("[]"))
    message = f"{url}: {refusal}, and client.toml does not name the URL"
    return UpstreamRefusedError(message, hint=HINT) if refusal else None


def attempt(shared: Shared, batch: Batch, url: ContentUrl, stream: int) -> TransferError | None:
    """Request the open files of `batch` from `url`; return the error, or None if it ran to its end.

    Files that arrived leave the batch in both cases, missing ones stay with their verdicts.
    Options of rsync that the daemon refuses are recorded, and left out from then on.  `stream`: the
    number of the calling stream.  Raises `OutOfTimeError` at the deadline, and `LocalWriteError` or
    `OSError` if the local disk could not take the files.
    """
    if is_copied(url, shared.options.extra):
        return copy_batch(shared, batch, url, stream)
    if url.transport is Transport.HTTP:
        from huai_client.transfer.http.bundles import request_batch  # loads libcurl

        return request_batch(shared, batch, url, stream)
    if refusal := refusal_of(url, shared.options):
        return refusal
    hosts, service = shared.options.hosts, url.service or str(url)
    refused = hosts.refused_options(service)
    while True:
        by_name = batch.by_name
        failure = _run_rsync(shared, batch, url, stream, refused)
        if isinstance(failure, OptionRefusedError) and failure.option not in refused:
            refused |= {failure.option}
            hosts.refuse_options(service, refused)
        elif batch.by_name == by_name or not batch.open:
            break
    if isinstance(failure, DroppedError):
        # Perhaps because of an option: the next attempt leaves out one more.
        rest = [option for option in command.OPTIONAL if option not in refused]
        hosts.refuse_options(service, frozenset(rest[:1]))
    return failure


def _run_rsync(
    shared: Shared, batch: Batch, url: ContentUrl, stream: int, refused: frozenset[str]
) -> TransferError | None:
    """Run rsync for `batch`, without `refused` options, and accept what arrived.

    Returns the upstream's error, or None; raises any other error.
    """
    processes, tally = shared.processes, shared.tally

    def on_data(size: int) -> None:
        """Report progress; stop rsync if it is late or too slow."""
        if size:
            shared.busy.admitted(stream)
        tally.in_flight(stream, size, run.output.files)
        if not left and pace.is_too_slow(size, run.bytes_read, grant.bwlimit):
            left.append(SlowerError(f"{url}: sends too slowly", hint=RETRY_HINT))
        if processes.late or left:
            run.stop()  # it keeps its part of the file in flight

    left: list[SlowerError] = []
    pace = Pace(shared.sources, url, sum(sizes(batch.open)), shared.options.timeout)
    with shared.admission.admit(url, processes.pause) as grant:
        processes.check_time()
        number = shared.staging.incoming.begin(batch.open)
        names = _names(shared, batch, url)
        process = _start(shared, batch, url, number, (names.text, grant, refused))
        began = time.monotonic()
        with processes.running(process) as run:
            code = run.wait(on_data)
    tally.completed(stream, run.output.received)
    took = time.monotonic() - began
    shared.sources.measured(url, run.output.progress, took)
    note_speed(url, shared.options.hosts, run.output.received, took)
    processes.check()
    proxy = rsync_proxy() if url.transport is Transport.DAEMON else None
    failure = classify_exit(code, run.output, url, proxy)
    if left and isinstance(failure, TransferError):
        failure = left[0]
    _settle(shared, batch, number, run, failure)
    by_name = bool(names.directories) and _may_arrive_by_name(shared, batch, run, failure)
    if failure is None or by_name:
        return None
    processes.check_time()  # at the deadline it was stopped here, and is not to blame
    if not isinstance(failure, TransferError):
        raise failure  # the disk of this machine: no other URL helps
    return failure


def _settle(
    shared: Shared, batch: Batch, number: int, run: RsyncProcess, failure: HuaiError | None
) -> None:
    """Accept the arrived files of `batch`, and make partials of the others, which stay open in it.

    Records the files that rsync could not read.
    """
    requested = len(batch.open)
    _verify(shared, batch, number, run, failure)
    for path in run.output.denied_of(paths(batch.open)):
        shared.refusals[path] = NOT_READABLE
    if batch.open or failure or run.output.files > requested:
        still_open = {file.path: file for file in batch.open}
        shared.staging.incoming.salvage(number, still_open)


def _start(
    shared: Shared,
    batch: Batch,
    url: ContentUrl,
    number: int,
    terms: tuple[bytes, Grant, frozenset[str]],
) -> RsyncProcess:
    """Start rsync in the folder of run `number` in the staging area.

    `terms`: the names, its share of the limits, and the options that the daemon refuses.
    """
    names, grant, refused = terms
    staging, options = shared.staging, shared.options
    with staging.incoming.opened(number) as folder:
        tree = shared.compare_dest if batch.compares else b""
        basis = command.Basis(tree, staging.incoming.has_basis(number))
        sides = command.Sides(require_rsync(options.program), refused)
        largest, total = command.most(_size_limits(shared, batch.open))
        confined = domain(url, options.program, options.extra, tree, folder)
        return RsyncProcess(
            command.arguments(options, url, basis, grant.bwlimit, largest, sides),
            names=names,
            folder=folder,
            locks=(shared.lock, *grant.slots),
            stall=StallDetector(options.timeout),
            bounds=Bounds(largest, total, confined, url.own),
        )


def _names(shared: Shared, batch: Batch, url: ContentUrl) -> command.Names:
    """Return the names of the open files, and of whole directories if that is possible."""
    options = shared.options
    trusts = command.trusts_sender(require_rsync(options.program))
    by_name = shared.by_name or batch.by_name or not trusts
    return command.names(batch.open, url, None if by_name else options.snapshot)


def _may_arrive_by_name(
    shared: Shared, batch: Batch, run: RsyncProcess, failure: HuaiError | None
) -> bool:
    """Return True if the open files of `batch` have to be requested one by one.

    Sets `batch.by_name` to that.

    That may help if a directory is unreadable and its files are not.  If a directory holds far more
    than the metadata list, no other one is requested as a whole either.
    """
    is_missing = any(verdict is Arrival.MISSING for _, verdict in batch.verdicts)
    batch.by_name = run.output.too_much or (failure is None and is_missing)
    shared.by_name |= run.output.too_much
    return batch.by_name


def _size_limits(shared: Shared, files: Sequence[File]) -> Iterator[int]:
    """Yield the largest size that is accepted for each of `files`, in bytes."""
    volatile = shared.options.volatile
    if not volatile:
        return sizes(files)
    pairs = zip(paths(files), sizes(files), strict=True)
    return (max(size, VOLATILE_BYTES) if path in volatile else size for path, size in pairs)


def _verify(
    shared: Shared, batch: Batch, number: int, run: RsyncProcess, failure: HuaiError | None
) -> None:
    """Accept the arrived files that match their metadata, and newer versions of volatile ones.

    The others stay open in `batch`, with their verdicts.
    """
    is_complete = failure is None and not run.output.unverified
    verdicts = shared.staging.incoming.accept(
        batch.open, number, cut=failure is not None, ended=run.ended, check=shared.processes.check
    )
    verified, rest = by_arrival(batch.open, verdicts)
    newer: list[File] = []
    batch.verdicts = []
    for file, verdict in rest:
        if verdict is Arrival.MISMATCH and is_complete and _accept_newer(shared, file, number, run):
            newer.append(file)
        elif file.path in run.output.too_large:
            batch.verdicts.append((file, Arrival.MISMATCH))
        else:
            batch.verdicts.append((file, verdict))
    shared.tally.arrived(joined(verified, newer))
    batch.open = [file for file, _ in batch.verdicts]


def _accept_newer(shared: Shared, file: File, number: int, run: RsyncProcess) -> bool:
    """Accept the arrived version of a volatile file if it may be published; return True if so."""
    if file.path not in shared.options.volatile:
        return False
    arrived = shared.staging.incoming.accept_newer(file, number, ended=run.ended)
    if arrived is not None:
        shared.newer[file.path] = arrived
    return arrived is not None
