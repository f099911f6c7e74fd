"""After a sync: says by a signature which serial the tree holds, and where (docs/MIRRORS.md).

Order of writes: the file in the tree, then the request to the upstream, then the record of both.  A
run cut in between says it again.  Nothing that fails here is a failure of the sync.

Rule: the file is put in place by one rename, and the times of the tree's top stay as the commit has
them.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from huai_client.config.mirror import Mirror
from huai_client.metadata.attest_key import AttestError, read_key
from huai_client.metadata.http import MetadataUrl, Question, ask, is_http, server_and_module
from huai_client.run.deadline import Deadline
from huai_client.state.state import State, replace_durably
from huai_client.tree import STAGING, STAGING_NAME
from huai_client.tree.reserved import open_own
from huai_program.durations import seconds
from huai_program.record_file import RecordFile
from huai_schema.codec.attestation import FILE_NAME, Attestation
from huai_schema.errors import HuaiError

_TIMEOUT, _LONGEST = 5.0, 10
"""Seconds without an answer, and for all of it."""
_MODE = 0o644
_ANSWER_BYTES = 4096


class Attested(msgspec.Struct, frozen=True):
    """What was attested last."""

    commit: str
    time: int
    """Seconds since the epoch."""
    sent: bool
    """Whether all was done that is wanted."""
    failure: str = ""
    urls: tuple[str, ...] = ()
    partial: bool | None = None
    """Whether something of the commit was left out; None: not recorded."""


class Outcome(NamedTuple):
    """What was attested just now."""

    said: Attestation
    sent: bool
    """Whether an upstream took it."""
    failure: str
    """Why not; empty: it did, or nobody wants that."""
    is_news: bool
    """Whether it failed otherwise, or did not fail, the last time."""


def attest(mirror: Mirror, state: State, now: int) -> Outcome | None:
    """Attest that the tree holds what `state` says; None: that was said lately.

    The caller holds the module's lock.  Every failure but the upstream's is an `AttestError`.
    """
    wanted = mirror.config.attest
    before = RecordFile(Attested, needed=False).load(mirror.paths.attested)
    recent = before is not None and 0 <= now - before.time < seconds(wanted.every)
    # What is not known to be whole is offered to nobody.
    partial = state.partial != ""
    known = before is not None and (before.commit, before.urls, before.partial)
    if before and known == (state.applied, wanted.urls, partial) and before.sent and recent:
        return None
    key = read_key(Path(wanted.key))
    said = Attestation(
        module=_called(mirror),
        identity=state.identity,
        serial=state.serial,
        commit=state.applied or "",
        # Two in one second would be one for the upstream.
        time=now if before is None or before.time != now else now + 1,
        partial=partial,
        urls=wanted.urls,
    )
    data = said.signed(key.sign)
    _write(mirror.dest, data)
    failure = _send(mirror, data) if wanted.send else ""
    done = Attested(said.commit, said.time, not failure, failure, said.urls, partial)
    replace_durably(mirror.paths.attested, msgspec.json.encode(done))
    is_news = before is None or before.failure != failure
    return Outcome(said, wanted.send and not failure, failure, is_news)


def _called(mirror: Mirror) -> str:
    """What the upstream calls the module."""
    return server_and_module(mirror.config.urls[0], mirror.upstream_name)[1]


def _write(top: Path, data: bytes) -> None:
    """Put the file at the top of the tree."""
    try:
        dest = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _put(dest, top, data)
        finally:
            os.close(dest)
    except OSError as error:
        raise AttestError(
            f"{top / FILE_NAME}: {error.strerror}", hint="what stands there has to be a file"
        ) from error


def _put(dest: int, top: Path, data: bytes) -> None:
    before = os.fstat(dest)
    staging = open_own(dest, top, STAGING)
    try:
        with suppress(FileNotFoundError):  # whatever an upstream put there
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
            with suppress(OSError):  # something else is staged there
                os.rmdir(folder, dir_fd=dest)
    with suppress(PermissionError):  # who does not own it cannot have set its times either
        os.utime(dest, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.fsync(dest)


def _send(mirror: Mirror, data: bytes) -> str:
    """Tell the first upstream that takes it; why none did, or nothing."""
    deadline = Deadline.after(_LONGEST)
    failures: list[str] = []
    for url in filter(is_http, mirror.config.urls):
        server, name = server_and_module(url, mirror.upstream_name)
        question = Question(f"api/v1/modules/{name}/attestations", data, "text/plain")
        try:
            at = MetadataUrl(server, mirror.tls)
            with ask(at, question, timeout=_TIMEOUT, deadline=deadline) as answer:
                answer.whole(_ANSWER_BYTES)
        except HuaiError as error:
            failures.append(error.message)
        else:
            return ""
    return failures[0] if failures else "no upstream is asked over HTTP"
