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
from huai_client.transfer.listener import Listener, Tally
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.rsync.run import require_rsync
from huai_client.transfer.shared import Shared
from huai_client.transfer.sources import Sources
from huai_client.transfer.streams import FailedFiles, Streams
from huai_client.transfer.urls import ContentUrl
from huai_program.disk_hints import DISK_HINTS
from huai_schema.entries import File
from huai_schema.paths import RelPath

_LEVELS = 1024
"""Depth of a path from which on rsync fails: at 1,030 with "Cannot allocate memory"."""
_TOO_DEEP = f"too long: rsync transfers no path of {_LEVELS:,} directories"


class RefusedFile(NamedTuple):
    """A file that the upstream does not serve, or that rsync cannot request."""

    file: File
    reason: str
    """Follows the path in messages."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The requested files, by result; each list in the order of the request."""

    arrived: Sequence[File]
    """Ready in the staging area, including files of earlier runs."""
    missing: list[File]
    """Missing upstream."""
    mismatched: list[File]
    """The arrived file does not match the metadata, or is not a regular file."""
    bytes_received: int
    """Bytes over the wire, protocol included; interrupted runs are not counted."""
    late: list[File] = field(default_factory=list)
    """Not arrived before the deadline."""
    refused: list[RefusedFile] = field(default_factory=list)
    """Refused by the upstream, which would refuse them to the next run as well."""
    newer: dict[RelPath, File] = field(default_factory=dict)
    """Volatile files of `arrived` that differ from the metadata, as they arrived."""
    unchanged: list[File] = field(default_factory=list)
    """Volatile files without an arrival that may be published."""

    def __add__(self, other: "Outcome") -> "Outcome":
        """Return the results of both."""
        return Outcome(
            arrived=joined(self.arrived, other.arrived),
            missing=self.missing + other.missing,
            mismatched=self.mismatched + other.mismatched,
            bytes_received=self.bytes_received + other.bytes_received,
            late=self.late + other.late,
            refused=self.refused + other.refused,
            newer={**self.newer, **other.newer},
            unchanged=self.unchanged + other.unchanged,
        )

    @property
    def complete(self) -> bool:
        """True if no file is `failed`.

        A volatile file that is missing or mismatched is `unchanged`; a late one has failed.
        """
        return not self.failed

    @property
    def failed(self) -> list[File]:
        """All files that did not arrive, without the `unchanged` ones."""
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

    Files that no URL has, or that are late, are in the outcome, not raised.  Files of
    `options.volatile` may have changed: see `Outcome.newer` and `Outcome.unchanged`.  Raises a
    `TransferError` if no upstream can be reached, `LocalWriteError` (or its `DiskFullError`) if the
    staging area cannot be written, `RsyncRequirementError` if rsync is missing or too old,
    `StagingBusyError` if another process uses the staging area.  Files that arrived before an error
    stay ready.
    """
    with disk_errors(staging):
        absent = staging.absent(files)
        if not absent:
            return Outcome(files, [], [], 0)
        sources = Sources(urls, options.hosts.health)
        uses_rsync = any(needs_rsync(url, options.extra) for url in urls)
        if uses_rsync:
            require_rsync(options.program)
        tally = Tally(listener)
        with staging.exclusive() as lock:
            staging.incoming.recover(absent)
            absent = staging.absent(absent)
            older = os.path.abspath(os.fsencode(dest))
            shared = Shared(absent, sources, staging, options, tally, older, lock, uses_rsync)
            tally.started(len(absent), sum(sizes(absent)))
            try:
                failed = Streams(shared).run()
            finally:
                tally.ended()
    return _outcome(files, failed, shared)


def _outcome(files: Sequence[File], not_arrived: FailedFiles, shared: Shared) -> Outcome:
    """Return `files` by result; volatile ones that did not arrive are `unchanged`."""
    verdicts, late = dict(not_arrived.verdicts), set(not_arrived.late)
    received, newer = shared.tally.received, shared.newer
    if not verdicts and not late:
        return Outcome(files, [], [], received, newer=newer)
    absent = [*within(files, {file.path for file in (*verdicts, *late)})]
    stale = [file for file in absent if file in verdicts and file.path in shared.options.volatile]
    failed = {file: verdict for file, verdict in verdicts.items() if file not in stale}
    missing = [file for file in absent if failed.get(file) is Arrival.MISSING]
    refusals, absent_paths = dict(shared.refusals), {file.path for file in absent}
    if shared.uses_rsync:
        refusals.update(
            (file.path, _TOO_DEEP) for file in missing if file.path.count(b"/") >= _LEVELS
        )
    return Outcome(
        arrived=without(files, absent_paths),
        missing=[file for file in missing if file.path not in refusals],
        mismatched=[file for file in absent if failed.get(file) is Arrival.MISMATCH],
        bytes_received=received,
        late=[file for file in absent if file in late],
        refused=[
            RefusedFile(file, refusals[file.path]) for file in missing if file.path in refusals
        ],
        newer=newer,
        unchanged=stale,
    )


@contextmanager
def disk_errors(staging: Staging) -> Iterator[None]:
    """Raise each `OSError` of the block as a `LocalWriteError`, for a full disk `DiskFullError`."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        kind = DiskFullError if full else LocalWriteError
        hint = DISK_HINTS.get(error.errno or 0, "check the file system")
        raise kind(
            f"{staging.root}: {error.strerror}", hint=f"{hint}; files that have arrived are kept"
        ) from error
