"""Attests, after a sync, by a signature which serial a tree has, and its URLs (docs/MIRRORS.md).

Order of writes: the file in the tree, then the request to the upstream, then the record of both.
The next run repeats what was cut.  No failure here is one of the sync.

Rule: the file is replaced by one rename, and the times of the tree's top stay those of the commit.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from huai_client.config.mirror import Mirror
from huai_client.metadata.http import MetadataUrl, Request, is_http, send, server_and_module
from huai_client.metadata.signers import AttestError, read_key
from huai_client.run.options import Deadline
from huai_client.state.state import State, replace_durably
from huai_client.tree import STAGING, STAGING_NAME
from huai_client.tree.handles import closing
from huai_client.tree.reserved import open_own
from huai_program.durations import seconds
from huai_program.record_file import RecordFile
from huai_schema.codec.attestation import FILE_NAME, Attestation
from huai_schema.errors import HuaiError

_TIMEOUT, _LONGEST = 5.0, 10
"""Seconds without a response, and for the whole exchange."""
_MODE = 0o644
_ANSWER_BYTES = 4096


class Attested(msgspec.Struct, frozen=True):
    """The record of the last attestation."""

    commit: str
    time: int
    """Seconds since the epoch."""
    sent: bool  # prose: a key of the file
    """True if everything that is configured was done."""
    failure: str = ""
    urls: tuple[str, ...] = ()
    partial: bool | None = None
    """True if a part of the commit was left out; None: not recorded."""


class AttestOutcome(NamedTuple):
    """The outcome of an attestation."""

    attestation: Attestation
    accepted: bool
    """True if an upstream accepted it."""
    failure: str
    """The reason of a failure; empty if it was accepted, or not to be sent."""
    is_news: bool
    """True if the failure differs from that of the last time."""


def attest(mirror: Mirror, state: State, now: int) -> AttestOutcome | None:
    """Attest that the tree equals `state`: write a signed file into it, send it if configured.

    Records the outcome, and returns it; a failure of the upstream is a part of it.  None if the
    same was attested, and sent if configured, less than `every` before `now` (s since the epoch).
    The caller holds the module's lock.  Raises `AttestError` if the key or the tree is unusable,
    `ConfigError` for a key that others may change, `StateError` if the record cannot be written.
    """
    settings = mirror.config.attest
    before = RecordFile(Attested, needed=False).load(mirror.paths.attested)
    recent = before is not None and 0 <= now - before.time < seconds(settings.every)
    # A tree that may be incomplete is offered to no other mirror.
    partial = state.partial != ""
    last = before is not None and (before.commit, before.urls, before.partial)
    if before and last == (state.applied, settings.urls, partial) and before.sent and recent:
        return None
    key = read_key(Path(settings.key))
    attestation = Attestation(
        module=server_and_module(mirror.config.urls[0], mirror.upstream_name)[1],
        identity=state.identity,
        serial=state.serial,
        commit=state.applied or "",
        # The upstream would take two in one second for one.
        time=now if before is None or before.time != now else now + 1,
        partial=partial,
        urls=settings.urls,
    )
    data = attestation.signed(key.sign)
    _write(mirror.dest, data)
    failure = _send(mirror, data) if settings.send else ""
    commit, time = attestation.commit, attestation.time
    record = Attested(commit, time, not failure, failure, settings.urls, partial)
    replace_durably(mirror.paths.attested, msgspec.json.encode(record))
    is_news = before is None or before.failure != failure
    return AttestOutcome(attestation, settings.send and not failure, failure, is_news)


def _write(top: Path, data: bytes) -> None:
    """Replace the attestation in `top`; raises `AttestError` if it cannot be written."""
    try:
        with closing(os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as dest:
            _replace(dest, top, data)
    except OSError as error:
        raise AttestError(
            f"{top / FILE_NAME}: {error.strerror}", hint="remove whatever else has this name"
        ) from error


def _replace(dest: int, top: Path, data: bytes) -> None:
    """Replace the attestation by `data`, by a rename, durably; restore the times of the top.

    `dest` is a handle of the tree at the path `top`.  Raises `OSError`.
    """
    before = os.fstat(dest)
    staging = open_own(dest, top, STAGING)
    try:
        with suppress(FileNotFoundError):  # left by a killed run, or from the upstream
            os.unlink(FILE_NAME, dir_fd=staging)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(FILE_NAME, flags, 0o600, dir_fd=staging), "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), _MODE)
            os.fsync(file.fileno())
        os.replace(FILE_NAME, FILE_NAME, src_dir_fd=staging, dst_dir_fd=dest)
    finally:
        os.close(staging)
        for folder in (STAGING, STAGING_NAME):
            with suppress(OSError):  # not empty: other files are staged there
                os.rmdir(folder, dir_fd=dest)
    with suppress(PermissionError):  # without ownership its times were never set
        os.utime(dest, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.fsync(dest)


def _send(mirror: Mirror, data: bytes) -> str:
    """Send the attestation `data` to one upstream after the other, until one accepts it.

    Returns the first failure if none does, else an empty text.
    """
    deadline = Deadline.after(_LONGEST)
    failures: list[str] = []
    for url in filter(is_http, mirror.config.urls):
        server, name = server_and_module(url, mirror.upstream_name)
        request = Request(f"api/v1/modules/{name}/attestations", data, "text/plain")
        try:
            at = MetadataUrl(server, mirror.tls)
            with send(at, request, timeout=_TIMEOUT, deadline=deadline) as response:
                response.read_all(_ANSWER_BYTES)
        except HuaiError as error:
            failures.append(error.message)
        else:
            return ""
    return failures[0] if failures else "no upstream has a URL of http or https"
