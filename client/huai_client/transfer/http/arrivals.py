"""The files of a batch, as HTTP brings them: asked for, written, verified, and what became of each.

A beginning that an interrupted run left is continued, if a digest will tell whether it was one;
if not, the file is asked for once more as a whole.  What is whole is verified soon, after one file,
then after more and more: a mirror with wrong content is noticed before it has sent much of it.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Self

from huai_client.staging import Arrival, by_arrival
from huai_client.transfer.errors import (
    ConnectionBrokenError,
    UpstreamRefusedError,
    WrongContentError,
)
from huai_client.transfer.http.address import address_of
from huai_client.transfer.http.answer import Answer, Asked, Meaning
from huai_client.transfer.http.job import Job
from huai_client.transfer.http.login import LOGIN_HINT
from huai_client.transfer.http.targets import Folders, Target
from huai_client.transfer.shared import NOT_READABLE, Shared
from huai_client.transfer.urls import ContentUrl
from huai_schema.entries import File
from huai_schema.paths import RelPath, show

_SECOND = 1_000_000_000
_VERIFIED_FILES = 1000
_VERIFIED_BYTES = 64 << 20
"""So much at most waits for being verified."""
_TRIES = 3
"""Of a file at which the server fails, while others come."""
_IN_VAIN = 8
"""So many files in a row, and nothing else, tell of the whole URL."""


class Arrivals:
    """A `Work`: the open files of a batch at one URL; to be closed, as a context manager."""

    def __init__(
        self,
        shared: Shared,
        url: ContentUrl,
        files: Sequence[File],
        place: tuple[int, Folders, Mapping[RelPath, int]],
    ) -> None:
        """`place`: the run, its folder, and the sizes of the beginnings that lie there."""
        self.verdicts: dict[RelPath, Arrival] = {}
        """Of files that did not arrive, as far as the URL was asked for them."""
        self.here: set[RelPath] = set()
        """The files that arrived."""
        self.size = 0
        """Their bytes."""
        self._shared = shared
        self._url = url
        self._files = iter(files)
        self._run, self._folders, beginnings = place
        self._beginnings = dict(beginnings)
        self._again: deque[File] = deque()
        self._asked: dict[Job, tuple[File, Target]] = {}
        self._waiting: list[tuple[File, int | None]] = []
        self._waiting_size = 0
        self._failures: dict[RelPath, int] = {}
        self._in_vain = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close what was still coming; it stays."""
        for _, target in self._asked.values():
            target.close()
        self._asked.clear()

    # ------------------------------------------------------------ Work

    def take(self) -> Job | None:
        """The next file; what needs no content, or has all of it, is here."""
        while (file := self._next()) is not None:
            begun = self._beginnings.get(file.path, 0)
            is_proved = file.digest is not None or not file.size
            is_volatile = file.path in self._shared.options.volatile
            if is_volatile or begun < file.size or not is_proved:
                return self._job(file, begun)
            target = Target(self._folders, file.path)
            target.begin(file.size)
            target.close(file.mtime)
            self._came(file, None)
        return None

    def done(self, job: Job, answer: Answer) -> None:
        """Keep what came, or note why nothing did."""
        file, target = self._asked.pop(job)
        meaning = answer.meaning
        if meaning is Meaning.TAKE:
            target.close(_time(file, answer.modified))
            if job.continues:
                self._beginnings.setdefault(file.path, 0)
            self._came(file, answer.modified)
            return
        touched = target.is_open
        target.close()
        if meaning is Meaning.LOGIN:
            raise UpstreamRefusedError(f"{self._url}: {answer.reason}", hint=LOGIN_HINT)
        if meaning in (Meaning.FAILING, Meaning.DENIED):
            self._refused(file, answer)
            return
        self._in_vain = 0
        if meaning is Meaning.MISSING:
            self.verdicts[file.path] = Arrival.MISSING
        elif job.continues and meaning is not Meaning.OTHER and self._may_try(file):
            self._ask_again(file)
        else:
            self._refuse(file, drop=touched)

    # ------------------------------------------------------------ asking

    def _next(self) -> File | None:
        return next(self._files, None) or (self._again.popleft() if self._again else None)

    def _job(self, file: File, begun: int) -> Job:
        changes, proved = file.path in self._shared.options.volatile, file.digest is not None
        asked = Asked(0, file.size, file.size, proved=proved and not changes, changes=changes)
        position = begun if asked.proved else 0
        target = Target(self._folders, file.path)
        job = Job(address_of(self._url.source, file.path), asked, target, position)
        self._asked[job] = file, target
        return job

    def _ask_again(self, file: File) -> None:
        """Ask for all of it: its beginning was none."""
        self._beginnings.pop(file.path, None)
        self._again.append(file)

    def _refused(self, file: File, answer: Answer) -> None:
        """The server does not hand it out."""
        self._in_vain += 1
        failing = answer.meaning is Meaning.FAILING
        if self._in_vain >= _IN_VAIN and not self.here and not self._waiting:
            self._end_in_vain(answer.reason, failing=failing)
        if failing and self._may_try(file):
            self._again.append(file)
            return
        reason = f"the server fails at it: {answer.reason}" if failing else NOT_READABLE
        self._shared.refusals[file.path] = reason
        self.verdicts[file.path] = Arrival.MISSING

    def _may_try(self, file: File) -> bool:
        tries = self._failures[file.path] = self._failures.get(file.path, 0) + 1
        return tries < _TRIES

    def _end_in_vain(self, reason: str, *, failing: bool) -> None:
        said = f"{self._url}: {reason}"
        if failing:
            raise ConnectionBrokenError(said, hint="sync again: files that have arrived are kept")
        raise UpstreamRefusedError(said, hint="check the content URL and its access rules")

    # ------------------------------------------------------------ what came

    def _came(self, file: File, modified: int | None) -> None:
        self._in_vain = 0
        self._waiting.append((file, modified))
        self._waiting_size += file.size
        enough = len(self._waiting) >= min(_VERIFIED_FILES, 1 + 2 * len(self.here))
        large = self._waiting_size >= _VERIFIED_BYTES
        if enough or large or file.path in self._beginnings:
            self.verify()

    def verify(self) -> None:
        """Let the staging area judge what came; raises `WrongContentError` as the rules say."""
        shared, waiting = self._shared, dict(self._waiting)
        self._waiting.clear()
        self._waiting_size = 0
        files = [*waiting]
        check = shared.processes.check
        verdicts = shared.staging.incoming.accept(files, self._run, check=check)
        here, others = by_arrival(files, verdicts)
        self._arrived(here)
        for file, _ in others:
            self._judge_other(file, waiting[file])

    def _arrived(self, files: Sequence[File]) -> None:
        self.here.update(file.path for file in files)
        self.size += sum(file.size for file in files)
        self._shared.tally.arrived(files)

    def _judge_other(self, file: File, modified: int | None) -> None:
        """It is whole, and not what the metadata say."""
        if file.path in self._shared.options.volatile:
            self._judge_newer(file, modified)
        elif file.path in self._beginnings and self._may_try(file):
            self._ask_again(file)
        else:
            self._refuse(file)
            if file.digest is not None:
                self._leave_out(file)

    def _judge_newer(self, file: File, modified: int | None) -> None:
        incoming = self._shared.staging.incoming
        newer = None
        if modified is not None:
            self._folders.stamp(file.path, modified * _SECOND)
            newer = incoming.accept_newer(file, self._run)
        if newer is None:
            self._refuse(file)
        else:
            self._shared.newer[file.path] = newer
            self._arrived([file])

    def _refuse(self, file: File, *, drop: bool = True) -> None:
        """What came is of no use, not even as a beginning."""
        self.verdicts[file.path] = Arrival.MISMATCH
        if drop:
            self._folders.drop(file.path)

    def _leave_out(self, file: File) -> None:
        """End this if another URL can bring what is left."""
        if any(other != self._url for other in self._shared.sources.usable()):
            raise WrongContentError(
                f"{self._url}: {show(file.path)} has the right size and other content",
                hint="tell its administrator: it is left out for the rest of this run",
            )


def _time(file: File, modified: int | None) -> int:
    """The time that what came is given; without a digest it is the server's word that counts."""
    if file.digest is not None or modified == file.mtime // _SECOND:
        return file.mtime
    return (modified or 0) * _SECOND
