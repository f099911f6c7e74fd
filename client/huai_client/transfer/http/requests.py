"""One request at a time by one handle of libcurl, which is used again for the next.

The rule to keep: no exception leaves a callback, as libcurl would not know what to do with it; it
is kept in `broken`, and raised by whoever runs the loop.
"""

import socket
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import pycurl

from huai_client.config.proxies import Proxy
from huai_client.config.reach import Reach
from huai_client.config.tls import Tls, TlsFiles
from huai_client.transfer.http.answer import Answer, Meaning, judge, read_head
from huai_client.transfer.http.job import Job

_MULTIPLEXED = (b"HTTP/2", b"HTTP/3")
_SUPPRESS_CONNECT_HEADERS = 265
"""CURLOPT_SUPPRESS_CONNECT_HEADERS, which pycurl has no name for: what a proxy says about a tunnel
is no answer of the other side."""
_ASKED = pycurl.PRETRANSFER_TIME
_REFUSED = 0
"""Bytes taken: libcurl ends the request."""
_HEAD_MAX = 256 << 10
_DRAINED = 64 << 10
"""A body of no use up to this size is read to its end: that keeps the connection."""
_BUFFER = 256 << 10
_KIBIBYTE = 1024


class Circumstances(NamedTuple):
    """What all requests of an attempt have in common."""

    agent: str
    authorities: tuple[str | None, str | None]
    """A file and a folder of certificates, of the system."""
    tls: TlsFiles
    contimeout: int
    """Seconds."""
    rate: int
    """KiB/s of all together; 0: no limit."""
    reach: Reach | None = None
    """The addresses that requests to other URLs than the administrator's may lead to; None: any."""


class _SocketAddress(Protocol):
    """The address that pycurl is about to connect to."""

    family: int
    socktype: int
    protocol: int
    addr: tuple[str | int, ...]


class _Opened:
    """A socket that pycurl takes a duplicate of."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened

    def fileno(self) -> int:
        return self._socket.fileno()

    def __del__(self) -> None:
        self._socket.close()


class Traffic:
    """What has come by all requests together."""

    def __init__(self) -> None:
        self.received = 0
        """Bytes, heads included."""
        self.multiplexed: bool | None = None
        """Whether a connection takes many requests at a time; None: nobody has answered yet."""
        self.first_byte = 0.0
        """Seconds from a question to its answer, the least of all; 0: nobody has answered yet."""


class Request:
    """A handle, and the job that it is busy with."""

    def __init__(
        self, circumstances: Circumstances, tls: Tls, reach: Reach | None, traffic: Traffic
    ) -> None:
        """Nothing is asked yet.

        `reach`: where a connection may lead, unless it is one to a proxy; None: anywhere.
        """
        self.curl = pycurl.Curl()
        self.tls = tls
        """Own certificates: it asks only where they are for."""
        self.broken: BaseException | None = None
        """What was raised while something was taken."""
        self.job: Job
        self.hops: list[str] = []
        """The addresses that redirections led to."""
        self.refusal = ""
        """Why an address was not connected to."""
        self.reach = reach
        self._traffic = traffic
        self._head = bytearray()
        self._answer: Answer | None = None
        self._body = 0
        self._set_up(circumstances)

    def _set_up(self, circumstances: Circumstances) -> None:
        curl = self.curl
        for option, value in (
            (pycurl.HEADERFUNCTION, self._hear_head),
            (pycurl.WRITEFUNCTION, self._hear_body),
            (pycurl.USERAGENT, circumstances.agent),
            (pycurl.CONNECTTIMEOUT, circumstances.contimeout),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS),
            (pycurl.BUFFERSIZE, _BUFFER),
            # Of one request, which else would take all that waits in the network at once.
            (pycurl.MAX_RECV_SPEED_LARGE, circumstances.rate * _KIBIBYTE),
            (pycurl.NOSIGNAL, 1),  # there are other threads
            (pycurl.FOLLOWLOCATION, 0),  # `address` knows where to, and without a login
            (pycurl.NETRC, pycurl.NETRC_IGNORED),  # `login` has read it
            (pycurl.PATH_AS_IS, 1),
            (_SUPPRESS_CONNECT_HEADERS, 1),
            (pycurl.SSL_VERIFYPEER, 1),
            (pycurl.SSL_VERIFYHOST, 2),
        ):
            curl.setopt(option, value)
        file, folder = (self.tls.ca, None) if self.tls.ca else circumstances.authorities
        for option, path in ((pycurl.CAINFO, file), (pycurl.CAPATH, folder)):
            if path is None:
                curl.unsetopt(option)
            else:
                curl.setopt(option, path)
        if self.tls.certificate:
            curl.setopt(pycurl.SSLCERT, self.tls.certificate)
            curl.setopt(pycurl.SSLKEY, self.tls.key)
            curl.setopt(pycurl.KEYPASSWD, "")  # else the terminal would be asked

    def set_proxy(self, proxy: Proxy | None) -> None:
        """Go through `proxy`, which then decides where that leads, or else where `reach` allows.

        libcurl would read the environment by rules of its own, and connect past both.
        """
        self.curl.setopt(pycurl.NOPROXY, "")
        self.curl.setopt(pycurl.PROXY, proxy.url.geturl() if proxy else "")
        if proxy:
            self.curl.unsetopt(pycurl.OPENSOCKETFUNCTION)
        else:
            self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)

    def begin(self, job: Job, address: str, headers: Sequence[str]) -> None:
        """Ask `address` for what `job` wants; `headers` go there."""
        self.job = job
        self.refusal = ""
        self._head.clear()
        self._answer, self._body, self.broken = None, 0, None
        self.curl.setopt(pycurl.URL, address)
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

    def _open_socket(self, _purpose: int, address: _SocketAddress) -> _Opened | int:
        try:
            self.refusal = self.reach.refusal(str(address.addr[0])) if self.reach else ""
            if not self.refusal:
                family, kind, protocol = address.family, address.socktype, address.protocol
                return _Opened(socket.socket(family, kind, protocol))
        except BaseException as error:  # noqa: BLE001 - see above
            self.broken = error
        return pycurl.SOCKET_BAD

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
