"""Fetching and comparing files of a mirror, by libcurl or by rsync into a temporary folder.

Rules:

- A name is resolved once.  No redirect is followed, and no address of this network is connected to
  unless the configuration allows it.
- Transfers are bounded in bytes and seconds, and their content is not kept.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple
from urllib.parse import quote_from_bytes, urlsplit, urlunsplit

import pycurl

from huai_native._native import Blake3
from huai_program.authorities import trust_authorities
from huai_schema import __version__
from huai_schema.entries import File
from huai_server.fallback.programs import fetch_files
from huai_server.http.resolver import UnreachableError, for_libcurl, in_url, resolve

_CONNECT_SECONDS, _SLOW_SECONDS, _SECONDS = 10, 30, 300
_SLOW_RATE = 1024
"""Bytes a second; a transfer that is slower for `_SLOW_SECONDS` is aborted."""
_HEAD_BYTES = 64 << 10
_PART = 1 << 20
_OK, _GONE = 200, (404, 410)

Kind = Literal["good", "wrong", "missing", "failed"]


class Finding(NamedTuple):
    """The result for one file."""

    kind: Kind
    path: bytes
    reason: str = ""


def compare(url: str, files: Sequence[File], program: Path, *, internal: bool) -> Iterator[Finding]:
    """Fetch `files`, which must not be empty, below `url`; yield a finding for each: good or bad.

    `program` is the path of rsync; `internal` allows addresses of this network.  A host that is not
    found, or not allowed, gives one finding with an empty path.
    """
    try:
        if url.startswith("rsync:"):
            yield from _check_by_rsync(url, files, program, internal=internal)
            return
        addresses = for_libcurl(url, internal=internal)
        for file in files:
            yield _check_by_http(url, addresses, file)
    except UnreachableError as error:
        yield Finding("failed", b"", error.message)


def _check_by_http(url: str, addresses: list[str], file: File) -> Finding:
    """Fetch a file below `url` by HTTP, at most its size, and compare it with its digest.

    `addresses` is an entry for CURLOPT_RESOLVE.  A failed transfer gives a finding, no error.
    """
    curl, content = pycurl.Curl(), Blake3()
    received = head = 0

    def receive(data: bytes) -> int:
        """Hash data; abort the transfer beyond the file's size."""
        nonlocal received
        received += len(data)
        content.update(data)
        return len(data) if received <= file.size else 0

    def receive_header(data: bytes) -> int:
        """Count bytes of headers; abort the transfer beyond the limit."""
        nonlocal head
        head += len(data)
        return len(data) if head <= _HEAD_BYTES else 0

    try:
        for option, value in (
            (pycurl.URL, f"{url.rstrip('/')}/{quote_from_bytes(file.path, safe='/')}"),
            (pycurl.RESOLVE, addresses),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.NOPROXY, "*"),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.FAILONERROR, 1),
            (pycurl.NOSIGNAL, 1),
            (pycurl.CONNECTTIMEOUT, _CONNECT_SECONDS),
            (pycurl.LOW_SPEED_LIMIT, _SLOW_RATE),
            (pycurl.LOW_SPEED_TIME, _SLOW_SECONDS),
            (pycurl.TIMEOUT, _SECONDS),
            (pycurl.USERAGENT, f"huai-server/{__version__}"),
            (pycurl.WRITEFUNCTION, receive),
            (pycurl.HEADERFUNCTION, receive_header),
        ):
            curl.setopt(option, value)
        trust_authorities(curl)
        failure = ""
        try:
            curl.perform()
        except pycurl.error as error:
            failure = str(error.args[-1])
        status = int(curl.getinfo(pycurl.RESPONSE_CODE))
    finally:
        curl.close()
    if status in _GONE:
        return Finding("missing", file.path, f"HTTP {status}")
    if status == _OK and received > file.size:
        return Finding("wrong", file.path, f"more than {file.size} bytes")
    if failure or status != _OK:
        return Finding("failed", file.path, failure or f"HTTP {status}")
    return _judge(file, content.digest(), received)


def _check_by_rsync(
    url: str, files: Sequence[File], program: Path, *, internal: bool
) -> Iterator[Finding]:
    """Fetch all files in one run of rsync, and compare them with their digests.

    Rsync gets an address, so that it does not resolve the name again.  Yields a finding for each
    file; raises `UnreachableError` if the name cannot be resolved, or its address is not allowed.
    """
    parts = urlsplit(url.rstrip("/"))
    address = in_url(resolve(url, internal=internal)[0])
    place = urlunsplit(parts._replace(netloc=f"{address}:{parts.port or 873}"))
    most = max(file.size for file in files)
    with TemporaryDirectory(prefix="huai-probe-") as folder:
        paths = [file.path for file in files]
        reached = fetch_files(program, place, paths, Path(folder), seconds=_SECONDS, most=most)
        for file in files:
            if not reached:
                yield Finding("failed", file.path, "rsync cannot connect")
            else:
                yield _check_file(os.path.join(os.fsencode(folder), file.path), file)


def _check_file(place: bytes, file: File) -> Finding:
    """Hash the fetched file at `place`, and compare it with the digest of `file`.

    It is "missing" if it cannot be opened.
    """
    try:
        handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return Finding("missing", file.path, "rsync did not fetch it, or it is larger")
    content = Blake3()
    with open(handle, "rb") as opened:
        while part := opened.read(_PART):
            content.update(part)
        size = opened.tell()
    return _judge(file, content.digest(), size)


def _judge(file: File, digest: bytes, size: int) -> Finding:
    """Return "good" for a file fetched with its digest, otherwise "wrong" with the reason."""
    if digest == file.digest:
        return Finding("good", file.path)
    reason = f"{size} bytes instead of {file.size}" if size != file.size else "other content"
    return Finding("wrong", file.path, reason)
