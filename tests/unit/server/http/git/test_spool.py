import asyncio
import os
from pathlib import Path

import pytest

from huai_server.http.git.spool import MEMORY_BYTES, Spool, Spooled

PIECES = [bytes([number]) * 60_000 for number in range(40)]
WHOLE = b"".join(PIECES)


async def fill(spooled: Spooled) -> None:
    for piece in PIECES:
        await spooled.put(piece)
    await spooled.end()


async def drain(spooled: Spooled) -> bytes:
    parts = []
    while piece := await spooled.get():
        parts.append(piece)
    return b"".join(parts)


@pytest.mark.parametrize("limit", [0, MEMORY_BYTES, 3 * MEMORY_BYTES, 1 << 30])
def test_what_was_put_is_got(tmp_path: Path, limit: int) -> None:
    async def run() -> None:
        spool = Spool(tmp_path, limit)
        async with spool.answer() as spooled, asyncio.timeout(60):
            filling = asyncio.ensure_future(fill(spooled))
            assert await drain(spooled) == WHOLE
            await filling
            assert spooled.size == len(WHOLE)
        assert spool.size == 0

    asyncio.run(run())


def test_with_room_nothing_waits_for_the_reader(tmp_path: Path) -> None:
    async def run() -> None:
        spool = Spool(tmp_path, 1 << 30)
        async with spool.answer() as spooled:
            async with asyncio.timeout(60):
                await fill(spooled)
            assert spool.size > len(WHOLE) - 2 * MEMORY_BYTES
            assert os.listdir(tmp_path) == []  # the file has no name
            assert await drain(spooled) == WHOLE
        assert spool.size == 0

    asyncio.run(run())


def test_all_answers_together_keep_to_the_limit(tmp_path: Path) -> None:
    async def run() -> None:
        spool = Spool(tmp_path, 2_000_000)
        async with spool.answer() as one, spool.answer() as other, asyncio.timeout(60):
            filling = [asyncio.ensure_future(fill(each)) for each in (one, other)]
            for _ in range(1000):
                await asyncio.sleep(0)
                assert spool.size <= 2_000_000
            for got in await asyncio.gather(drain(one), drain(other)):
                assert got == WHOLE
            await asyncio.gather(*filling)
        assert spool.size == 0

    asyncio.run(run())


@pytest.mark.parametrize("folder", ["/nonexistent", "/dev/full"])
def test_without_a_place_it_goes_at_the_pace_of_the_reader(folder: str) -> None:
    async def run() -> None:
        spool = Spool(Path(folder), 1 << 30)
        async with spool.answer() as spooled, asyncio.timeout(60):
            filling = asyncio.ensure_future(fill(spooled))
            assert await drain(spooled) == WHOLE
            await filling
        assert spool.size == 0

    asyncio.run(run())


def test_a_writer_cut_at_any_step_gives_its_room_back(tmp_path: Path) -> None:
    async def run(steps: int) -> None:
        spool = Spool(tmp_path, 1 << 30)
        async with spool.answer() as spooled:
            filling = asyncio.ensure_future(fill(spooled))
            for _ in range(steps):
                await asyncio.sleep(0)
            filling.cancel()
            await asyncio.gather(filling, return_exceptions=True)
        assert spool.size == 0

    for steps in range(40):
        asyncio.run(run(steps))
