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
    """What it claims, if it is not the truth."""
    stall: bool = False
    """Sends no more, and keeps the connection open."""


class Asked(NamedTuple):
    """A request that came."""

    line: str
    login: str | None


@dataclass
class Script:
    """Replies by path, and what was asked."""

    url: str = ""
    replies: dict[str, Reply] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    pack: str = ""
    """The path of the pack that was served last."""

    def serve(self, commit: str, pack: bytes) -> None:
        """Serve a head, and the pack of all that it names."""
        file = StaticFile(len(pack), Blake3(pack).digest())
        self.pack = f"/m.git/static/{file.pack}"
        self.replies[HEAD] = Reply(static_head(commit, file))
        self.replies[self.pack] = Reply(pack)

    def packs_asked(self) -> int:
        """How many packs were asked for so far."""
        return sum("/static/packs/" in asked.line for asked in self.asked)


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
            script.asked.append(Asked(f"{self.command} {self.path}", login))
            found = script.replies.get(self.path, Reply(status=404))
            self.send_response(found.status)
            self.send_header("Content-Type", found.content_type)
            length = len(found.body) if found.length is None else found.length
            self.send_header("Content-Length", str(length))
            if found.location:
                self.send_header("Location", found.location)
            self.end_headers()
            self.wfile.write(found.body)
            self.wfile.flush()
            if found.stall:
                script.released.wait(SECONDS)

    return Handler
