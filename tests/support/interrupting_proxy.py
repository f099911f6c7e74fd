"""An HTTP proxy on loopback that asks a test before and after each request that changes things."""

import http.client
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.support.answering import QuietHandler, answering

_SECONDS = 60
_CHANGING = ("PUT", "POST", "DELETE")


class Moment(NamedTuple):
    """The progress of a proxy in a run."""

    number: int
    """The number of the request among those that change something, from 0."""
    done: bool
    """True if the server has carried it out."""


Verdict = Callable[[Moment], bool]
"""True to pass on the request, or its response; false to send the client a 503."""


def interrupting(upstream: str, verdict: Verdict) -> AbstractContextManager[str]:
    """Pass requests on to the server at `upstream`; yields the address."""
    target = urlsplit(upstream).netloc
    lock = threading.Lock()
    changes = 0

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65_537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            with lock:
                self._pass_on(body)

        def _pass_on(self, body: bytes) -> None:
            nonlocal changes
            changing = self.command in _CHANGING
            moment = Moment(changes, done=False)
            changes += changing
            if changing and not verdict(moment):
                self._answer(503, [], b"")
                return
            connection = http.client.HTTPConnection(target, timeout=_SECONDS)
            connection.request(self.command, self.path, body, dict(self.headers))
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            if changing and not verdict(moment._replace(done=True)):
                self._answer(503, [], b"")
                return
            self._answer(answer.status, answer.getheaders(), content)

        def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            with suppress(OSError):  # whom a test has killed
                self.end_headers()
                self.wfile.write(body)

    return answering(Handler)
