"""An upstream with static files that says what a test wants it to say, right or wrong."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from huai_native._native import Blake3
from huai_schema.codec.static_files import NOTHING, Static, StaticFile, Step
from tests.support.answering import QuietHandler, answering

SECONDS = 30
HEAD = "/m.git/static/head"


class Reply(NamedTuple):
    """An answer to one request."""

    body: bytes = b""
    status: int = 200
    content_type: str = "application/octet-stream"
    location: str = ""
    length: int | None = None
    """The Content-Length to claim instead of the true one."""
    stall: bool = False
    """Sends no more, and keeps the connection open."""


class Request(NamedTuple):
    """A received request."""

    line: str
    login: str | None


@dataclass
class Script:
    """Replies by path, and the requests."""

    url: str = ""
    replies: dict[str, Reply] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    pack: str = ""
    """The path of the pack that was served last."""

    def serve(self, commit: str, pack: bytes) -> None:
        """Serve a head, and the pack of all that it names."""
        file = StaticFile(len(pack), Blake3(pack).digest())
        self.pack = f"/m.git/static/{file.pack_name}"
        self.replies[HEAD] = Reply(static_head(commit, file))
        self.replies[self.pack] = Reply(pack)

    def packs_asked(self) -> int:
        """Return the number of packs that were requested so far."""
        return sum("/static/packs/" in asked.line for asked in self.requests)


def static_head(commit: str, file: StaticFile) -> bytes:
    """A head of one commit, with one step from nothing."""
    return Static({1: commit}, (Step(NOTHING, 1, file),)).encode()


@contextmanager
def scripted() -> Iterator[Script]:
    """A server that follows a script, which may still be changed."""
    script = Script()
    try:
        with answering(_handler(script)) as script.url:
            yield script
    finally:
        script.released.set()


def _handler(script: Script) -> type[QuietHandler]:
    class Handler(QuietHandler):
        """Looks the answer up."""

        def do_GET(self) -> None:
            login = self.headers.get("Authorization")
            script.requests.append(Request(f"{self.command} {self.path}", login))
            reply = script.replies.get(self.path, Reply(status=404))
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.content_type)
            length = len(reply.body) if reply.length is None else reply.length
            self.send_header("Content-Length", str(length))
            if reply.location:
                self.send_header("Location", reply.location)
            self.end_headers()
            self.wfile.write(reply.body)
            self.wfile.flush()
            if reply.stall:
                script.released.wait(SECONDS)

    return Handler
