"""One request at a time by a handle of libcurl, which is reused for the next one.

Rule: no exception leaves a callback (`curl.handle`).
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

import pycurl

from huai_client.config.allowed_addresses import AllowedAddresses
from huai_client.config.tls import Tls, TlsFiles
from huai_client.metadata.curl.handle import Handle
from huai_client.metadata.curl.head import read_head
from huai_client.transfer.http.job import Job
from huai_client.transfer.http.verdict import Meaning, Verdict, judge

_MULTIPLEXED = (b"HTTP/2", b"HTTP/3")
_SENT_TIME = pycurl.PRETRANSFER_TIME
_ABORT = 0
"""The return value of a callback that makes libcurl end the request."""
_HEAD_MAX = 256 << 10
_DRAINED = 64 << 10
"""An unused body up to this size is read to its end: that keeps the connection."""
_KIBIBYTE = 1024


class Circumstances(NamedTuple):
    """The options that all requests of an attempt share."""

    tls: TlsFiles
    contimeout: int
    """Seconds."""
    rate: int
    """KiB/s of all requests together; 0 for no limit."""
    allowed_addresses: AllowedAddresses | None = None
    """The addresses for requests to URLs that the administrator did not name; None for any."""


class Traffic:
    """The data that all requests together received."""

    def __init__(self) -> None:
        self.received = 0
        """Bytes received, heads included."""
        self.multiplexed: bool | None = None
        """True if connections are multiplexed; None before the first response."""
        self.first_byte = 0.0
        """Least seconds from a request to its response; 0 before the first one."""


class ContentRequest(Handle):
    """A handle, and the job that it carries out."""

    def __init__(
        self,
        circumstances: Circumstances,
        tls: Tls,
        allowed: AllowedAddresses | None,
        traffic: Traffic,
    ) -> None:
        """`tls`, `allowed`: see `Handle`."""
        super().__init__(tls, allowed)
        self.job: Job
        self.hops: list[str] = []
        """The URLs of the redirects."""
        self._traffic = traffic
        self._head = bytearray()
        self._verdict: Verdict | None = None
        self._body = 0
        for option, value in (
            (pycurl.HEADERFUNCTION, self._receive_head),
            (pycurl.WRITEFUNCTION, self._receive_body),
            (pycurl.CONNECTTIMEOUT, circumstances.contimeout),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS),
            # The limit of one request, which else would read all that waits in the network at once.
            (pycurl.MAX_RECV_SPEED_LARGE, circumstances.rate * _KIBIBYTE),
        ):
            self.curl.setopt(option, value)

    def begin(self, job: Job, address: str, headers: Sequence[str]) -> None:
        """Prepare the request for the bytes of `job` from `address`; the loop sends it."""
        self.job = job
        self.refusal = ""
        self._head.clear()
        self._verdict, self._body, self.broken = None, 0, None
        self.set_url(address)
        range_header = job.requested.header
        job.continues = bool(range_header)
        if range_header:
            self.curl.setopt(pycurl.RANGE, range_header)
        else:
            self.curl.unsetopt(pycurl.RANGE)
        # With HTTP/1.1 all would wait for the end of the first response.
        self.curl.setopt(pycurl.PIPEWAIT, int(self._traffic.multiplexed or False))
        self.curl.setopt(pycurl.HTTPHEADER, ["Accept-Encoding: identity", *job.headers, *headers])
        if (body := job.body) is None:
            self.curl.setopt(pycurl.HTTPGET, 1)
        else:
            self.curl.setopt(pycurl.POST, 1)
            self.curl.setopt(pycurl.POSTFIELDS, body)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the head received so far, reached once; if it is TAKE the job begins."""
        if self._verdict is None:
            self._verdict = judge(read_head(bytes(self._head)), self.job.requested, time.time())
            if self._verdict.meaning is Meaning.TAKE:
                self.job.begin(self._verdict)
        return self._verdict

    def ended(self) -> None:
        """Record the seconds to the first byte if they are the fewest, after a response ended."""
        curl = self.curl
        begin, first = (curl.getinfo(option) for option in (_SENT_TIME, pycurl.STARTTRANSFER_TIME))
        waited = first - begin
        if waited > 0:
            self._traffic.first_byte = min(waited, self._traffic.first_byte or waited)

    def _receive_head(self, line: bytes) -> int | None:
        """Add a header line; abort if the head is too long."""
        self._traffic.received += len(line)
        if line.startswith(b"HTTP/"):
            self._traffic.multiplexed = line.startswith(_MULTIPLEXED)
        self._head += line
        return None if len(self._head) <= _HEAD_MAX else _ABORT

    def _receive_body(self, data: bytes) -> int:
        """Pass data on; returns `_ABORT` after an error or too many bytes."""
        self._traffic.received += len(data)
        try:
            return len(data) if self._accept(data) else _ABORT
        except BaseException as error:  # noqa: BLE001 - see above
            self.broken = error
            return _ABORT

    def _accept(self, data: bytes) -> bool:
        """Pass on data; return False to abort, after too much of it."""
        verdict = self.verdict
        self._body += len(data)
        if verdict.meaning is not Meaning.TAKE:
            return self._body <= _DRAINED
        if self._body > verdict.most:
            self._verdict = Verdict(Meaning.UNFIT, "more bytes than were requested")
            return False
        self.job.write(data)
        return True
