"""The parts that tests of the transfer share: a recording listener, an upstream, a downstream."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from blake3 import blake3

from huai_client.staging import Arrival, Staging
from huai_client.transfer.fetch import Outcome, fetch
from huai_client.transfer.listener import Listener
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.urls import ContentUrl
from huai_client.tree import Finish
from huai_schema.entries import File
from huai_schema.paths import rel_path
from tests.support.staged import ready

BY_RSYNC = ("--checksum-seed=1",)
"""An option that only rsync knows: with it a path of this machine is not copied by the engine."""
TEST_OPTIONS = TransferOptions(backoff=0.05, retries=1, timeout=20, contimeout=10)


def described(root: Path, path: bytes, *, digest: bool = True) -> File:
    """The metadata of `path` below `root`, as a commit would hold it."""
    place = os.path.join(os.fsencode(root), path)
    status = os.lstat(place)
    content = Path(os.fsdecode(place)).read_bytes() if digest else b""
    return File(
        path=rel_path(path),
        size=status.st_size,
        mtime=status.st_mtime_ns,
        digest=blake3(content).digest() if digest else None,
    )


def write_file(root: Path, path: bytes, content: bytes, *, mtime: int | None = None) -> File:
    """Write a file below `root` and describe it."""
    place = Path(os.fsdecode(os.path.join(os.fsencode(root), path)))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    if mtime is not None:
        os.utime(place, ns=(mtime, mtime))
    return described(root, path)


def put_many(root: Path, number: int, size: int, folder: bytes = b"f") -> list[File]:
    """Files of random content, `size` bytes each."""
    paths = [b"%b/%d" % (folder, index) for index in range(number)]
    return [write_file(root, path, os.urandom(size)) for path in paths]


class Recorder(Listener):
    """A listener that records its events."""

    def __init__(self) -> None:
        self.totals: list[tuple[int, int]] = []
        self.sizes: list[int] = []
        self.files: list[int] = []
        self.arrived: list[bytes] = []
        self.not_arrived: list[tuple[bytes, Arrival]] = []
        self.retries: list[str] = []
        self.waits: list[str] = []
        self.ends = 0

    def started(self, files: int, size: int) -> None:
        self.totals.append((files, size))

    def progressed(self, size: int, files: int) -> None:
        self.sizes.append(size)
        self.files.append(files)

    def finished(self, files: Sequence[File]) -> None:
        self.arrived.extend(file.path for file in files)

    def refused(self, file: File, verdict: Arrival) -> None:
        self.not_arrived.append((file.path, verdict))

    def retried(self, reason: str) -> None:
        self.retries.append(reason)

    def waiting(self, reason: str) -> None:
        self.waits.append(reason)

    def ended(self) -> None:
        self.ends += 1


class Downstream:
    """A destination with its staging area."""

    def __init__(self, dest: Path, finish: Finish | None = None) -> None:
        dest.mkdir(exist_ok=True)
        self.dest = dest
        self.finish = finish
        self.finished: set[File] = set()
        """The files of the last transfer that have all their attributes."""
        self.root = dest / ".~tmp~" / "huai"
        self.listener = Recorder()

    def fetch(
        self,
        files: Sequence[File],
        urls: str | Iterable[str],
        options: TransferOptions = TEST_OPTIONS,
        *,
        own: bool = True,
    ) -> Outcome:
        """One transfer from `urls`, our `own` or not; what arrived is checked once more."""
        texts = [urls] if isinstance(urls, str) else urls
        parsed = [ContentUrl.parse(url)._replace(own=own) for url in texts]
        with Staging(self.root, finish=self.finish) as staging:
            outcome = fetch(files, parsed, self.dest, staging, options, self.listener)
            for file in (outcome.newer.get(each.path, each) for each in outcome.arrived):
                content = ready(staging, file).read_bytes()
                assert len(content) == file.size
                assert file.digest in (None, blake3(content).digest())
            self.finished = {*outcome.arrived} - {*staging.incoming.unfinished(outcome.arrived)}
        return outcome
