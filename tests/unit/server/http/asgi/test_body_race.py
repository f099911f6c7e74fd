import asyncio

import pytest

from huai_server.http.asgi.body import race


async def _fail() -> None:
    raise ValueError("guard")


async def _nothing() -> None:
    await asyncio.sleep(0)


class Sleeper:
    """Work that never ends by itself."""

    def __init__(self) -> None:
        self.cancelled = False

    async def work(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.cancelled = True


async def _answer() -> int:
    for _ in range(5):
        await asyncio.sleep(0)
    return 42


def test_the_result_comes_through_and_guards_end() -> None:
    guard = Sleeper()
    assert asyncio.run(race(_answer(), _nothing(), guard.work())) == 42
    assert guard.cancelled


def test_a_guard_that_raises_ends_the_work_before_its_error_is_seen() -> None:
    sleeper = Sleeper()
    with pytest.raises(ValueError, match="guard"):
        asyncio.run(race(sleeper.work(), _nothing(), _fail()))
    assert sleeper.cancelled


def test_cancelling_it_cancels_the_work() -> None:
    async def run() -> bool:
        sleeper = Sleeper()
        task = asyncio.ensure_future(race(sleeper.work()))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return sleeper.cancelled

    assert asyncio.run(run())
