"""The use case: transfer the content of files into the staging area."""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from huai_client.diff.files import joined, sizes, within, without
from huai_client.staging import Arrival, Staging
from huai_client.transfer.attempt import needs_rsync
from huai_client.transfer.errors import DiskFullError, LocalWriteError
from huai_client.transfer.listener import Listener
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.rsync.run import require_rsync
from huai_client.transfer.shared import Shared
from huai_client.transfer.sources import Sources
from huai_client.transfer.streams import Failed, Streams
from huai_client.transfer.tally import Tally
from huai_client.transfer.urls import ContentUrl
from huai_program.disk_hints import DISK_HINTS
from huai_schema.entries import File
from huai_schema.paths import RelPath

_LEVELS = 1024
"""Directories in a path from which on rsync fails: at 1,030 it says "Cannot allocate memory"."""
_TOO_DEEP = f"too long: rsync transfers no path of {_LEVELS:,} directories"


class Refused(NamedTuple):
    """A file that the upstream does not hand out, or that rsync cannot ask for."""

    file: File
    reason: str
    """Follows the path in messages."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The files that were asked for, by result; each in the order of the request."""

    arrived: Sequence[File]
    """Ready in the staging area, those of earlier runs included."""
    missing: list[File]
    """Missing upstream."""
    mismatched: list[File]
    """What arrived does not match the metadata, or is no regular file."""
    bytes_received: int
    """Bytes over the wire, protocol included; interrupted runs are not counted."""
    late: list[File] = field(default_factory=list)
    """Not arrived at the deadline."""
    refused: list[Refused] = field(default_factory=list)
    """Refused by the upstream, which would refuse them to the next run as well."""
    newer: dict[RelPath, File] = field(default_factory=dict)
    """Of `arrived`: volatile files that differ from the metadata, as they arrived."""
    kept: list[File] = field(default_factory=list)
    """Volatile files for which nothing arrived that may be published."""

    def __add__(self, other: "Outcome") -> "Outcome":
        """The results of both."""
        return Outcome(
            arrived=joined(self.arrived, other.arrived),
            missing=self.missing + other.missing,
            mismatched=self.mismatched + other.mismatched,
            bytes_received=self.bytes_received + other.bytes_received,
            late=self.late + other.late,
            refused=self.refused + other.refused,
            newer={**self.newer, **other.newer},
            kept=self.kept + other.kept,
        )

    @property
    def complete(self) -> bool:
        """Whether everything arrived."""
        return not self.failed

    @property
    def failed(self) -> list[File]:
        """All files that did not arrive, without `kept`."""
        refused = [each.file for each in self.refused]
        return [*self.missing, *self.mismatched, *self.late, *refused]


def fetch(
    files: Sequence[File],
    urls: Sequence[ContentUrl],
    dest: Path,
    staging: Staging,
    options: TransferOptions,
    listener: Listener,
) -> Outcome:
    """Transfer `files` from the first of `urls` that has them, deltas against `dest`.

    Files of `options.volatile` may have changed: see `Outcome.newer` and `Outcome.kept`.

    Raises a `TransferError` if no upstream can be reached, `LocalWriteError` (or its
    `DiskFullError`) if the staging area cannot be written, `RsyncRequirementError`,
    `StagingBusyError`.  Files that arrived before an error stay ready.
    """
    with disk_errors(staging):
        wanted = staging.absent(files)
        if not wanted:
            return Outcome(files, [], [], 0)
        sources = Sources(urls, options.hosts.health)
        by_rsync = any(needs_rsync(url, options.extra) for url in urls)
        if by_rsync:
            require_rsync(options.program)
        tally = Tally(listener)
        with staging.exclusive() as lock:
            staging.incoming.recover(wanted)
            wanted = staging.absent(wanted)
            older = os.path.abspath(os.fsencode(dest))
            shared = Shared(wanted, sources, staging, options, tally, older, lock, by_rsync)
            tally.started(len(wanted), sum(sizes(wanted)))
            try:
                failed = Streams(shared).run()
            finally:
                tally.ended()
    return _outcome(files, failed, shared)


def _outcome(files: Sequence[File], not_arrived: Failed, shared: Shared) -> Outcome:
    verdicts, late = dict(not_arrived.verdicts), set(not_arrived.late)
    received, newer = shared.tally.received, shared.newer
    if not verdicts and not late:
        return Outcome(files, [], [], received, newer=newer)
    absent = [*within(files, {file.path for file in (*verdicts, *late)})]
    kept = [file for file in absent if file in verdicts and file.path in shared.options.volatile]
    failed = {file: verdict for file, verdict in verdicts.items() if file not in kept}
    missing = [file for file in absent if failed.get(file) is Arrival.MISSING]
    refusals, gone = dict(shared.refusals), {file.path for file in absent}
    if shared.by_rsync:
        refusals.update((file.path, _TOO_DEEP) for file in missing if _is_too_deep(file.path))
    return Outcome(
        arrived=without(files, gone),
        missing=[file for file in missing if file.path not in refusals],
        mismatched=[file for file in absent if failed.get(file) is Arrival.MISMATCH],
        bytes_received=received,
        late=[file for file in absent if file in late],
        refused=[Refused(file, refusals[file.path]) for file in missing if file.path in refusals],
        newer=newer,
        kept=kept,
    )


def _is_too_deep(path: bytes) -> bool:
    return path.count(b"/") >= _LEVELS


@contextmanager
def disk_errors(staging: Staging) -> Iterator[None]:
    """Turn each `OSError` of the block into a `LocalWriteError`."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        kind = DiskFullError if full else LocalWriteError
        hint = DISK_HINTS.get(error.errno or 0, "check the file system")
        raise kind(
            f"{staging.root}: {error.strerror}", hint=f"{hint}; files that have arrived are kept"
        ) from error
