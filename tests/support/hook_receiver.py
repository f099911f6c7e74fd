"""A receiver of web hooks: a real HTTP server that answers as a test says."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from tests.support.answering import QuietHandler, answering

Answer = Callable[[BaseHTTPRequestHandler], None]


class Got(NamedTuple):
    """A request."""

    path: str
    headers: dict[str, str]
    """By name in lower case."""
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        """The JSON object of the body."""
        message = json.loads(self.body)
        assert isinstance(message, dict)
        return message


class Receiver:
    """The requests of web hooks, and the URL that they went to."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.got: list[Got] = []


def status(code: int, **headers: str) -> Answer:
    """An answer without a body."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


@contextmanager
def receiver(*answers: Answer) -> Iterator[Receiver]:
    """Answer one request after the other, the last way from then on; default 204."""
    rest = list(answers)

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.got.append(Got(self.path, headers, self.rfile.read(size)))
            answer = rest.pop(0) if len(rest) > 1 else (rest or [status(204)])[0]
            answer(self)

    with answering(Handler) as url:
        state = Receiver(url)
        yield state
