import asyncio
from typing import Any

import pytest

from huai_server.http.asgi.body import HEAD_BYTES, Body
from huai_server.http.asgi.errors import ClientGoneError

DISCONNECT = {"type": "http.disconnect"}


class Client:
    """The ASGI `receive` of a client that sends some messages and then nothing."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self._messages = list(messages)

    async def receive(self) -> dict[str, Any]:
        if self._messages:
            return self._messages.pop(0)
        await asyncio.Event().wait()
        raise AssertionError


def part(data: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": data, "more_body": more}


def body(client: Client, timeout: float = 60) -> Body:
    return Body(client.receive, b"", 1 << 20, timeout)


def test_a_small_body_is_complete_and_then_the_client_is_watched() -> None:
    async def run() -> None:
        read = body(Client(part(b"a"), part(b"b", more=False), DISCONNECT))
        await read.open()
        assert (read.head, read.complete) == (b"ab", True)
        with pytest.raises(ClientGoneError):
            await read.wait_for_disconnect()

    asyncio.run(run())


def test_a_long_body_goes_on_where_its_head_ended() -> None:
    async def run() -> None:
        block = b"x" * (HEAD_BYTES // 2)
        read = body(Client(part(block), part(block), part(b"tail"), part(b"", more=False)))
        await read.open()
        assert (len(read.head), read.complete) == (HEAD_BYTES, False)
        assert [chunk async for chunk in read.rest() if chunk] == [b"tail"]

    asyncio.run(run())
