"""What the client makes of a hostile upstream's answers: bytes on a socket, through all its HTTP.

Nobody is asked: each connection is one end of a pair of sockets, on which the answer stands
already.  An input is a digit that says which question is asked, and the answers, with `NEXT`
between them for each connection after a redirection.
"""

import contextlib
import socket
from unittest.mock import patch

from huai_client.config.reach import Reach
from huai_client.metadata.git.protocol import ask_for_pack, receive_pack
from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.http_connection import Route
from huai_client.metadata.newest import find_newest
from huai_client.metadata.served import list_modules
from huai_schema.errors import HuaiError
from tests.fuzz.target import Target
from tests.support.scripted_upstream import RESULT, advert, reply

_NEXT = b"\n--\n"
_COMMIT = "0123456789abcdef0123456789abcdef01234567"
_BASE = "http://127.0.0.1:1"
_SECONDS = 30.0


class _Upstream:
    """Stands behind every address."""

    def __init__(self, answers: list[bytes], open_ends: contextlib.ExitStack) -> None:
        self._answers = answers
        self._open_ends = open_ends

    def connect(self, timeout: float, _reach: Reach | None = None) -> socket.socket:
        """As `Route.connect`; the last answer is that to all later questions."""
        ours, theirs = map(self._open_ends.enter_context, socket.socketpair())
        theirs.sendall(self._answers[0])
        theirs.shutdown(socket.SHUT_WR)
        self._answers = self._answers[1:] or self._answers
        ours.settimeout(timeout)
        return ours


def _answer(data: bytes) -> object:
    with contextlib.ExitStack() as open_ends:
        upstream = _Upstream(_answers(data), open_ends)
        open_ends.enter_context(patch.object(Route, "connect", upstream.connect))
        if data.startswith(b"1"):
            receive_pack(ask_for_pack(MetadataUrl(_BASE), b"0000", timeout=_SECONDS), _nowhere)
            return "pack"
        if data.startswith(b"2"):
            return len(list_modules(MetadataUrl(_BASE), timeout=_SECONDS)) > 0
        newest = find_newest(MetadataUrl(f"{_BASE}/m.git"), timeout=_SECONDS)
        _ = newest.found.service, str(newest.found)
        if data.startswith(b"3"):
            asked = ask_for_pack(newest.found, b"0000", timeout=_SECONDS, line=newest.line)
            receive_pack(asked, _nowhere)
            return "pack on the same connection"
        return "newest"


def _nowhere(_data: bytes) -> None:
    """Where packs go to."""


def _answers(data: bytes) -> list[bytes]:
    return data[1:].split(_NEXT)


def _said(status: bytes, body: bytes, *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _chunked(body: bytes, *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"Transfer-Encoding: chunked", *headers, b"", b"%x" % len(body)]
    return b"\r\n".join(lines) + b"\r\n" + body + b"\r\n0\r\nX: y\r\n\r\n"


_ADVERT = advert(_COMMIT)
_TYPE = b"Content-Type: " + RESULT.encode()
_DATE = b"Date: Sat, 21 Nov 2026 10:00:00 GMT"
_MODULES = b'{"modules": [{"name": "m", "serial": 3, "totals": {"entries": 2, "bytes": 9}}]}'

ANSWERS = {
    "answer": Target(
        _answer,
        (HuaiError,),
        [
            b"0" + _said(b"200 OK", _ADVERT, _DATE),
            b"0" + _chunked(_ADVERT),
            b"0HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" + _said(b"200 OK", _ADVERT),
            b"0"
            + _said(b"302 Found", b"", b"Location: /n.git/")
            + _NEXT
            + _said(b"200 OK", _ADVERT),
            b"0"
            + _said(b"307 Go", b"", b"Location: http://[::1]:80/m.git/info/refs?service=x")
            + _NEXT
            + _said(b"200 OK", _ADVERT),
            b"0" + _said(b"503 Busy", b"later", b"Retry-After: 120"),
            b"0" + _said(b"404 Not Found", b"no"),
            b"0HTTP/1.0 200 OK\n\n" + _ADVERT,
            b"1" + _said(b"200 OK", reply(b"PACK"), _TYPE),
            b"1" + _chunked(reply(b"PACK"), _TYPE),
            b"3" + _said(b"200 OK", _ADVERT) + _said(b"200 OK", reply(b"PACK"), _TYPE),
            b"3" + _said(b"200 OK", _ADVERT) + _NEXT + _chunked(reply(b"PACK"), _TYPE),
            b"2" + _said(b"200 OK", _MODULES, b"Content-Type: application/json"),
        ],
        [
            _NEXT,
            *(b"\r\n", b"HTTP/1.1 ", b"Location: ", b"Transfer-Encoding: chunked\r\n", b"\r\n\r\n"),
            *(b"Content-Length: ", b"http://", b"99999", b"Content-Type: message/rfc822\r\n", b"@"),
        ],
    )
}
