"""The files of a batch over HTTP: requested, written, verified, each with its verdict.

The partial file of an interrupted run is continued if a digest will prove the result; if it fails,
the file is requested once more as a whole.  Complete files are verified soon, after one file, then
after more and more: a mirror with wrong content is detected before it has sent much of it.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from huai_client.staging import Arrival, by_arrival
from huai_client.transfer.errors import (
    RETRY_HINT,
    ConnectionBrokenError,
    UpstreamRefusedError,
    WrongContentError,
)
from huai_client.transfer.http.job import FileSink, Folders, Job, address_of
from huai_client.transfer.http.login import LOGIN_HINT
from huai_client.transfer.http.verdict import Meaning, RequestedRange, Verdict
from huai_client.transfer.shared import NOT_READABLE, Shared
from huai_client.transfer.urls import ContentUrl
from huai_schema.entries import File
from huai_schema.paths import RelPath, show

_SECOND = 1_000_000_000
_VERIFIED_FILES = 1000
_VERIFIED_BYTES = 64 << 20
"""Limits on complete files that wait for being verified."""
_TRIES = 3
"""Attempts at a file that the server fails to send, while others arrive."""
_FAILURES_MOST = 8
"""Failures in a row, with no success, that condemn the whole URL."""


class Arrivals(AbstractContextManager["Arrivals"]):
    """The open files of a batch at one URL, as a `Work` and a context manager."""

    def __init__(
        self,
        shared: Shared,
        url: ContentUrl,
        files: Sequence[File],
        place: tuple[int, int, Folders, Mapping[RelPath, int]],
    ) -> None:
        """`place`: the stream, the run, its folder, and the sizes of the partial files in it."""
        self.verdicts: dict[RelPath, Arrival] = {}
        """The verdicts on requested files that did not arrive."""
        self.arrived_paths: set[RelPath] = set()
        """The paths of the files that arrived."""
        self.size = 0
        """The bytes of the files that arrived."""
        self._shared = shared
        self._url = url
        self._files = iter(files)
        self._stream, self._run, self._folders, beginnings = place
        self._beginnings = dict(beginnings)
        self._retries: deque[File] = deque()
        self._running: dict[Job, tuple[File, FileSink]] = {}
        self._waiting: list[tuple[File, int | None]] = []
        self._waiting_size = 0
        self._failures: dict[RelPath, int] = {}
        self._failed_in_row = 0

    @property
    def files(self) -> int:
        """The number of files that arrived."""
        return len(self.arrived_paths)

    def __exit__(self, *_: object) -> None:
        """Close the files in progress; they stay."""
        for _, target in self._running.values():
            target.close()
        self._running.clear()

    def next_job(self) -> Job | None:
        """Return a job for the next file; None if none waits, as a failed one may be later.

        A file that is complete already is queued for verification instead.
        """
        while (file := self._next_file()) is not None:
            begun = self._beginnings.get(file.path, 0)
            is_proved = file.digest is not None or not file.size
            is_volatile = file.path in self._shared.options.volatile
            if is_volatile or begun < file.size or not is_proved:
                return self._make_job(file, begun)
            target = FileSink(self._folders, file.path)
            target.begin(file.size)
            target.close(file.mtime)
            self._add_received(file, None)
        return None

    def end_job(self, job: Job, verdict: Verdict) -> None:
        """Keep the received file, record the failure, or request the file again.

        Raises a `TransferError` if a login is required, after many failures in a row, and as
        `verify` does.
        """
        file, target = self._running.pop(job)
        meaning = verdict.meaning
        if meaning is Meaning.TAKE:
            target.close(_time(file, verdict.modified))
            if job.continues:
                self._beginnings.setdefault(file.path, 0)
            self._add_received(file, verdict.modified)
            return
        touched = target.is_open
        target.close()
        if meaning is Meaning.LOGIN:
            raise UpstreamRefusedError(f"{self._url}: {verdict.reason}", hint=LOGIN_HINT)
        if meaning in (Meaning.FAILING, Meaning.DENIED):
            self._record_refusal(file, verdict)
            return
        self._failed_in_row = 0
        if meaning is Meaning.MISSING:
            self.verdicts[file.path] = Arrival.MISSING
        elif job.continues and meaning is not Meaning.OTHER and self._may_try(file):
            self._restart(file)
        else:
            self._refuse(file, drop=touched)

    def _next_file(self) -> File | None:
        """Return the next file, or one to request again; None at the end."""
        return next(self._files, None) or (self._retries.popleft() if self._retries else None)

    def _make_job(self, file: File, begun: int) -> Job:
        """Return the request for a file, from its byte `begun` on if a digest proves it."""
        changes, proved = file.path in self._shared.options.volatile, file.digest is not None
        proved = proved and not changes
        requested = RequestedRange(0, file.size, file.size, proved=proved, changes=changes)
        position = begun if requested.proved else 0
        target = FileSink(self._folders, file.path)
        job = Job(address_of(self._url.source, file.path), requested, target, position)
        self._running[job] = file, target
        return job

    def _restart(self, file: File) -> None:
        """Request the whole file again, as the continued partial was not its beginning."""
        self._beginnings.pop(file.path, None)
        self._retries.append(file)

    def _record_refusal(self, file: File, verdict: Verdict) -> None:
        """Record that a file is not served, or request it again.

        Raises a `TransferError` after eight such in a row, if nothing has arrived.
        """
        self._failed_in_row += 1
        failing = verdict.meaning is Meaning.FAILING
        if self._failed_in_row >= _FAILURES_MOST and not self.arrived_paths and not self._waiting:
            self._give_up(verdict.reason, failing=failing)
        if failing and self._may_try(file):
            self._retries.append(file)
            return
        reason = f"the server fails to send it: {verdict.reason}" if failing else NOT_READABLE
        self._shared.refusals[file.path] = reason
        self.verdicts[file.path] = Arrival.MISSING

    def _may_try(self, file: File) -> bool:
        """Count a failed attempt at a file; return False after the third."""
        tries = self._failures[file.path] = self._failures.get(file.path, 0) + 1
        return tries < _TRIES

    def _give_up(self, reason: str, *, failing: bool) -> None:
        """Raise `ConnectionBrokenError` if the server is `failing`, else `UpstreamRefusedError`."""
        message = f"{self._url}: {reason}"
        if failing:
            raise ConnectionBrokenError(message, hint=RETRY_HINT)
        raise UpstreamRefusedError(message, hint="check the content URL and its access rules")

    def _add_received(self, file: File, modified: int | None) -> None:
        """Queue a received file for verification; verify all queued files once enough wait.

        `modified`: Last-Modified of the response (s), or None.
        """
        self._failed_in_row = 0
        self._waiting.append((file, modified))
        self._waiting_size += file.size
        enough = len(self._waiting) >= min(_VERIFIED_FILES, 1 + 2 * len(self.arrived_paths))
        large = self._waiting_size >= _VERIFIED_BYTES
        if enough or large or file.path in self._beginnings:
            self.verify()

    def verify(self) -> None:
        """Accept the queued files that match the metadata; request others again, or reject them.

        Raises `WrongContentError` for wrong content, if another URL may have the rest.
        """
        shared, waiting = self._shared, dict(self._waiting)
        self._waiting.clear()
        self._waiting_size = 0
        files = [*waiting]
        check = shared.processes.check
        verdicts = shared.staging.incoming.accept(files, self._run, check=check)
        arrived_paths, rejected = by_arrival(files, verdicts)
        self._count_arrived(arrived_paths)
        for file, _ in rejected:
            self._judge_other(file, waiting[file])

    def _count_arrived(self, files: Sequence[File]) -> None:
        """Count files, and report them as arrived."""
        self.arrived_paths.update(file.path for file in files)
        self.size += sum(file.size for file in files)
        self._shared.tally.arrived(files, stream=self._stream)

    def _judge_other(self, file: File, modified: int | None) -> None:
        """Accept, request again or reject a complete file that does not match the metadata.

        Raises `WrongContentError` for one with a digest, if there is another URL.
        """
        if file.path in self._shared.options.volatile:
            self._judge_newer(file, modified)
        elif file.path in self._beginnings and self._may_try(file):
            self._restart(file)
        else:
            self._refuse(file)
            if file.digest is not None:
                self._leave_url(file)

    def _judge_newer(self, file: File, modified: int | None) -> None:
        """Accept the newer version of a volatile file, or delete it and record a mismatch."""
        incoming = self._shared.staging.incoming
        newer = None
        if modified is not None:
            self._folders.stamp(file.path, modified * _SECOND)
            newer = incoming.accept_newer(file, self._run)
        if newer is None:
            self._refuse(file)
        else:
            self._shared.newer[file.path] = newer
            self._count_arrived([file])

    def _refuse(self, file: File, *, drop: bool = True) -> None:
        """Record that a file does not match; with `drop`, delete what arrived of it."""
        self.verdicts[file.path] = Arrival.MISMATCH
        if drop:
            self._folders.drop(file.path)

    def _leave_url(self, file: File) -> None:
        """Raise `WrongContentError`, which ends the use of this URL, if there is another one."""
        if any(other != self._url for other in self._shared.sources.usable()):
            raise WrongContentError(
                f"{self._url}: {show(file.path)} has the right size and other content",
                hint="tell the server's administrator: this run uses the URL no longer",
            )


def _time(file: File, modified: int | None) -> int:
    """Return the time to set (ns): that of `file` if a digest proves it or the server has the same.

    Else that of the server (`modified`, seconds), or 0.
    """
    if file.digest is not None or modified == file.mtime // _SECOND:
        return file.mtime
    return (modified or 0) * _SECOND
