"""The price that an address pays for the responses that git makes for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from huai_server.http.asgi.allowance import Allowance
from huai_server.http.asgi.errors import HttpError
from huai_server.http.asgi.limiter import Limiter
from huai_server.http.asgi.responder import Responder
from huai_server.http.git.reply_cache import ReplyCache
from huai_server.http.git.single_flight import Question, SingleFlight
from huai_server.http.git.spool import Spool
from huai_server.http.git.upload_pack import Call

ADDRESS = "10.0.0.1/32"


class QuickGit:
    """Answers "pack", and counts its processes."""

    def __init__(self) -> None:
        self.started = 0
        self._left = [b"pack"]

    @asynccontextmanager
    async def start(self, _: Call) -> AsyncIterator["QuickGit"]:
        self.started += 1
        self._left = [b"pack"]
        yield self

    async def read(self) -> bytes:
        await asyncio.sleep(0)
        return self._left.pop() if self._left else b""

    async def finish(self) -> tuple[int, str]:
        return 0, ""

    async def feed(self, _: None) -> None:
        await asyncio.sleep(0)


def test_an_address_without_allowance_starts_no_git(tmp_path: Path) -> None:
    git: Any = QuickGit()
    answers = SingleFlight(git, ReplyCache(0), Spool(tmp_path, 1 << 20), 60)
    call, limiter = Call(tmp_path, 0, advert=False), Limiter(2, 2, 60)

    async def fetch(allowance: Allowance | None, address: str = ADDRESS) -> None:
        async def send(_: object) -> None:
            await asyncio.sleep(0)

        question = Question(call, None, None, limiter, address, allowance)
        await answers.answer(question, Responder(send, b"x", b""))

    spent = Allowance(0, 1e-9, most=1)  # any work is too much, and nothing comes back
    asyncio.run(fetch(spent))
    with pytest.raises(HttpError, match="too much"):
        asyncio.run(fetch(spent))
    assert git.started == 1
    asyncio.run(fetch(spent, "10.0.0.2/32"))
    asyncio.run(fetch(None))
    assert git.started == 3
