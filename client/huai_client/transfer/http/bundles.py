"""Small files over HTTP in bundles: one request for many of them (FORMAT.md, "Bundles").

`serve` alone sends bundles, at `…/content/NAME/`; a URL that refuses the first request gets no
other one in this run.  Whatever a bundle lacks is requested file by file.  Rule: the engine proves
each file before it is written.
"""

import re
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from huai_client.diff.files import chosen, paths, sizes
from huai_client.state.hosts import Hosts
from huai_client.transfer.batch import Batch
from huai_client.transfer.copy import ARRIVALS, EngineVerdict, take_over
from huai_client.transfer.errors import TransferError, UpstreamFullError, WrongContentError
from huai_client.transfer.http.attempt import http_batch, run_requests
from huai_client.transfer.http.job import Job, Sink
from huai_client.transfer.http.verdict import Meaning, RequestedRange, Verdict
from huai_client.transfer.shared import NOT_READABLE, Shared
from huai_client.transfer.urls import ContentUrl
from huai_native._native import BundleWriter
from huai_schema.entries import File
from huai_schema.errors import FormatError
from huai_schema.limits import BUNDLE_PATHS, BUNDLE_REQUEST_BYTES, BUNDLED_BYTES
from huai_schema.paths import RelPath

if TYPE_CHECKING:
    from huai_client.staging import Arrival

_FEW = 2
_HEAD_BYTES, _SPARE_BYTES = 13, 1 << 20
"""The head of each record; and more, as some files may have changed."""
_ADDRESS = re.compile(r"/content/[^/]+/")
_HEADERS = ("Content-Type: application/x-huai-paths", "Content-Encoding: gzip", "Expect:")
_GZIP_WBITS, _LEVEL = 16 + zlib.MAX_WBITS, 1


def _may_offer_bundles(url: ContentUrl, hosts: Hosts) -> bool:
    """Return True if `url` has a path of `serve`, unless it is known to offer no bundles."""
    return bool(_ADDRESS.search(url.source)) and hosts.bundles.get(url.source, True)


def request_batch(
    shared: Shared, batch: Batch, url: ContentUrl, stream: int
) -> TransferError | None:
    """Request the open files of `batch`, small ones in bundles if offered.

    Returns and raises what `http_batch` does.
    """
    if not _may_offer_bundles(url, shared.options.hosts):
        return http_batch(shared, batch, url, stream)
    volatile = shared.options.volatile
    pairs = zip(paths(batch.open), sizes(batch.open), strict=True)
    is_small = [size <= BUNDLED_BYTES and path not in volatile for path, size in pairs]
    files = chosen(batch.open, [position for position, small in enumerate(is_small) if small])
    if len(files) < _FEW:
        return http_batch(shared, batch, url, stream)
    unbundled = [batch.open[position] for position, small in enumerate(is_small) if not small]
    failure, codes = _transfer(shared, files, url, stream)
    settled: list[tuple[File, Arrival]] = []
    for position, code in enumerate(codes):
        if arrival := ARRIVALS.get(code):
            settled.append((files[position], arrival))
        elif code == EngineVerdict.UNREACHED:
            unbundled.append(files[position])
        if code == EngineVerdict.DENIED:
            shared.refusals[files[position].path] = NOT_READABLE
    rest = Batch([*unbundled, *files[len(codes) :]])
    batch.open, batch.verdicts = [*(file for file, _ in settled), *rest.open], settled
    shared.processes.check_time()  # raises at the deadline
    if failure is None and rest.open:
        try:
            failure = http_batch(shared, rest, url, stream)
        finally:
            batch.open = [*(file for file, _ in settled), *rest.open]
            batch.verdicts = [*settled, *rest.verdicts]
    return failure


def _transfer(
    shared: Shared, files: Sequence[File], url: ContentUrl, stream: int
) -> tuple[TransferError | None, bytes]:
    """Stage `files` from bundles; return the error, and the engine's verdicts on the first ones.

    Records if `url` offers bundles.
    """
    hosts, staging, processes = shared.options.hosts, shared.staging, shared.processes
    run = staging.incoming.begin(())
    failure: TransferError | None = None
    with (
        staging.incoming.opened(run) as folder,
        shared.admission.admit(url, processes.pause) as grant,
    ):
        processes.check_time()
        writer = BundleWriter(files, folder, staging.finish)
        size = sum(sizes(files))
        bundles = _Bundles(url, [*paths(files)], size, writer)
        try:
            failure = run_requests(shared, bundles, (url, size), stream, grant)
        except FormatError:
            bundles.offers_no_bundles = True
        finally:
            codes = writer.verdicts()
            arrived = take_over(staging, run, files, codes)
            shared.tally.arrived(arrived)
    processes.check()
    if bundles.files:
        hosts.bundles.setdefault(url.source, True)
    if bundles.offers_no_bundles:
        hosts.bundles[url.source] = False
    elif failure is not None and not isinstance(failure, UpstreamFullError):
        hosts.bundles.setdefault(url.source, False)
    if failure is None and EngineVerdict.WRONG in codes:
        failure = _wrong_content(shared, url)
    return failure, codes


def _wrong_content(shared: Shared, url: ContentUrl) -> WrongContentError | None:
    """Return an error that ends the use of `url`; None if no other URL is usable."""
    if all(other == url for other in shared.sources.usable()):
        return None
    return WrongContentError(
        f"{url}: a file has the right size and other content",
        hint="tell the server's administrator: this run uses the URL no longer",
    )


class _BundleJob(Job):
    """A request for the files that have no verdict."""

    headers = _HEADERS

    def __init__(self, bundles: "_Bundles") -> None:
        most = bundles.most
        requested = RequestedRange(0, most, most, proved=False, changes=True)
        super().__init__(bundles.address, requested, bundles)
        self._bundles = bundles

    @property
    def body(self) -> bytes:
        """The paths, compressed."""
        return self._bundles.request()


class _Bundles(Sink):
    """The requests for some files, one after the other, as a `Work`; and their responses."""

    def __init__(
        self, url: ContentUrl, requested: Sequence[RelPath], size: int, writer: BundleWriter
    ) -> None:
        """`size`: of all files, in bytes."""
        self.address = url.source
        self.most = size + len(requested) * _HEAD_BYTES + _SPARE_BYTES
        """The most bytes of a response."""
        self.files = 0
        """The number of files with a verdict."""
        self.size = 0
        self.offers_no_bundles = False
        """True if the last response brought no file."""
        self._requested = requested
        self._writer = writer
        self._reached: int | None = None
        """The value of `files` before the request in progress; None between requests."""
        self._is_over = False

    def next_job(self) -> Job | None:
        """Return a request for the rest, or None.

        None while a request is running, if the last one brought no file, or if all arrived.
        """
        if self._reached is not None or self._is_over:
            return None
        self._reached = self.files
        return _BundleJob(self)

    def end_job(self, _: Job, verdict: Verdict) -> None:
        """Record the end of a response; without new files, or with an error, no request follows."""
        self.offers_no_bundles = self.files == self._reached
        is_complete = self.files == len(self._requested)
        self._is_over = self.offers_no_bundles or is_complete or verdict.meaning is not Meaning.TAKE
        self._reached = None

    def request(self) -> bytes:
        """Return the body of a request for the next files without a verdict, as many as fit."""
        body, size = [], 0
        for path in self._requested[self.files : self.files + BUNDLE_PATHS]:
            size += len(path) + 1
            if size > BUNDLE_REQUEST_BYTES:
                break
            body.append(path)
        packer = zlib.compressobj(_LEVEL, wbits=_GZIP_WBITS)
        return packer.compress(b"\0".join([*body, b""])) + packer.flush()

    def begin(self, _position: int) -> None:
        """Begin a response."""
        self._writer.begin()

    def write(self, _position: int, data: bytes) -> None:
        """Stage what has arrived; raises `FormatError`, or `OSError` of this machine's disk."""
        self.files = self._writer.write(data)
