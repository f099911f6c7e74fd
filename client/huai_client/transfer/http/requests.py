"""One request at a time by one handle of libcurl, which is used again for the next.

Rule: no exception leaves a callback (`curl.handle`).
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

import pycurl

from huai_client.config.reach import Reach
from huai_client.config.tls import Tls, TlsFiles
from huai_client.metadata.curl.handle import Handle
from huai_client.metadata.curl.head import read_head
from huai_client.transfer.http.answer import Answer, Meaning, judge
from huai_client.transfer.http.job import Job

_MULTIPLEXED = (b"HTTP/2", b"HTTP/3")
_ASKED = pycurl.PRETRANSFER_TIME
_REFUSED = 0
"""Bytes taken: libcurl ends the request."""
_HEAD_MAX = 256 << 10
_DRAINED = 64 << 10
"""A body of no use up to this size is read to its end: that keeps the connection."""
_KIBIBYTE = 1024


class Circumstances(NamedTuple):
    """What all requests of an attempt have in common."""

    tls: TlsFiles
    contimeout: int
    """Seconds."""
    rate: int
    """KiB/s of all together; 0: no limit."""
    reach: Reach | None = None
    """The addresses that requests to other URLs than the administrator's may lead to; None: any."""


class Traffic:
    """What has come by all requests together."""

    def __init__(self) -> None:
        self.received = 0
        """Bytes, heads included."""
        self.multiplexed: bool | None = None
        """Whether a connection takes many requests at a time; None: nobody has answered yet."""
        self.first_byte = 0.0
        """Seconds from a question to its answer, the least of all; 0: nobody has answered yet."""


class Request(Handle):
    """A handle, and the job that it is busy with."""

    def __init__(
        self, circumstances: Circumstances, tls: Tls, reach: Reach | None, traffic: Traffic
    ) -> None:
        """`tls`, `reach`: as `Handle` has them."""
        super().__init__(tls, reach)
        self.job: Job
        self.hops: list[str] = []
        """The addresses that redirections led to."""
        self._traffic = traffic
        self._head = bytearray()
        self._answer: Answer | None = None
        self._body = 0
        for option, value in (
            (pycurl.HEADERFUNCTION, self._hear_head),
            (pycurl.WRITEFUNCTION, self._hear_body),
            (pycurl.CONNECTTIMEOUT, circumstances.contimeout),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS),
            # Of one request, which else would take all that waits in the network at once.
            (pycurl.MAX_RECV_SPEED_LARGE, circumstances.rate * _KIBIBYTE),
        ):
            self.curl.setopt(option, value)

    def begin(self, job: Job, address: str, headers: Sequence[str]) -> None:
        """Ask `address` for what `job` wants; `headers` go there."""
        self.job = job
        self.refusal = ""
        self._head.clear()
        self._answer, self._body, self.broken = None, 0, None
        self.set_url(address)
        wanted = job.asked.header
        job.continues = bool(wanted)
        if wanted:
            self.curl.setopt(pycurl.RANGE, wanted)
        else:
            self.curl.unsetopt(pycurl.RANGE)
        # Of HTTP/1.1 all would wait for the first answer to end.
        self.curl.setopt(pycurl.PIPEWAIT, int(self._traffic.multiplexed or False))
        self.curl.setopt(pycurl.HTTPHEADER, ["Accept-Encoding: identity", *headers])

    @property
    def answer(self) -> Answer:
        """What the head says, as far as it has come."""
        if self._answer is None:
            self._answer = judge(read_head(bytes(self._head)), self.job.asked, time.time())
            if self._answer.meaning is Meaning.TAKE:
                self.job.begin(self._answer)
        return self._answer

    def ended(self) -> None:
        """Its answer is here, whatever it is."""
        curl = self.curl
        asked, heard = (curl.getinfo(each) for each in (_ASKED, pycurl.STARTTRANSFER_TIME))
        waited = heard - asked
        if waited > 0:
            self._traffic.first_byte = min(waited, self._traffic.first_byte or waited)

    def overflow(self, reason: str) -> None:
        """More came than was asked for."""
        self._answer = Answer(Meaning.UNFIT, reason)

    def _hear_head(self, line: bytes) -> int | None:
        self._traffic.received += len(line)
        if line.startswith(b"HTTP/"):
            self._traffic.multiplexed = line.startswith(_MULTIPLEXED)
        self._head += line
        return None if len(self._head) <= _HEAD_MAX else _REFUSED

    def _hear_body(self, data: bytes) -> int:
        self._traffic.received += len(data)
        try:
            return len(data) if self._take(data) else _REFUSED
        except BaseException as error:  # noqa: BLE001 - see above
            self.broken = error
            return _REFUSED

    def _take(self, data: bytes) -> bool:
        """Whether the body is to go on."""
        answer = self.answer
        self._body += len(data)
        if answer.meaning is not Meaning.TAKE:
            return self._body <= _DRAINED
        if self._body > answer.most:
            self.overflow("more bytes than were asked for")
            return False
        self.job.take(data)
        return True
