"""An upstream that says what a test wants it to say, right or wrong."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from huai_schema.git.pktline import FLUSH_PACKET, packet
from tests.support.answering import QuietHandler, answering

SECONDS = 30
RESULT = "application/x-git-upload-pack-result"
SERVICE = "/m.git/git-upload-pack"
ADVERT = "/m.git/info/refs?service=git-upload-pack"


class Reply(NamedTuple):
    """An answer to one request."""

    body: bytes = b""
    status: int = 200
    content_type: str = RESULT
    location: str = ""
    length: int | None = None
    """What it claims, if it is not the truth."""
    stall: bool = False
    """Sends no more, and keeps the connection open."""


class Asked(NamedTuple):
    """A request that came."""

    line: str
    login: str | None
    body: bytes


@dataclass
class Script:
    """Replies by path, and what was asked."""

    url: str = ""
    replies: dict[str, Reply] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def serve(self, head: str, pack: bytes) -> None:
        """A branch, and a pack for whoever asks for it."""
        self.replies[ADVERT] = Reply(advert(head))
        self.replies[SERVICE] = Reply(reply(pack))


def advert(head: str) -> bytes:
    """What a server of version 0 shows."""
    lines = packet(b"%b refs/heads/main\0 shallow\n" % head.encode())
    return packet(b"# service=git-upload-pack\n") + FLUSH_PACKET + lines + FLUSH_PACKET


def reply(pack: bytes) -> bytes:
    """A pack as it is wrapped."""
    parts = [packet(b"\x01" + pack[at : at + 60_000]) for at in range(0, len(pack), 60_000)]
    return FLUSH_PACKET + packet(b"NAK\n") + b"".join(parts) + FLUSH_PACKET


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
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, body: bytes) -> None:
            login = self.headers.get("Authorization")
            script.asked.append(Asked(f"{self.command} {self.path}", login, body))
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
