import asyncio

import pytest

from huai_server.http.gate import Gate
from huai_server.http.refusal import RefusedError


async def _hold(gate: Gate, go: asyncio.Event) -> None:
    async with gate.slot():
        await go.wait()


def test_a_full_line_refuses_and_a_place_in_it_is_served() -> None:
    async def run() -> None:
        gate, go = Gate(1, 1, 60), asyncio.Event()
        held = [asyncio.ensure_future(_hold(gate, go)) for _ in range(2)]
        await asyncio.sleep(0)
        assert gate.waiting == 1
        with pytest.raises(RefusedError) as refused:
            await _hold(gate, go)
        assert (refused.value.status, refused.value.retry_after > 0) == (503, True)
        go.set()
        await asyncio.gather(*held)
        await _hold(gate, go)
        assert gate.waiting == 0

    asyncio.run(run())


def test_waiting_has_an_end_and_gives_its_place_back() -> None:
    async def run() -> None:
        gate, go = Gate(1, 1, 0.01), asyncio.Event()
        held = asyncio.ensure_future(_hold(gate, go))
        for _ in range(3):
            await asyncio.sleep(0)
            with pytest.raises(RefusedError):
                await _hold(gate, go)
        go.set()
        await held
        await _hold(gate, go)

    asyncio.run(run())


def test_a_cancelled_waiter_takes_no_slot_along() -> None:
    async def run() -> None:
        gate, go = Gate(1, 1, 60), asyncio.Event()
        held = asyncio.ensure_future(_hold(gate, go))
        await asyncio.sleep(0)
        waiter = asyncio.ensure_future(_hold(gate, go))
        await asyncio.sleep(0)
        go.set()
        await held
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)
        async with asyncio.timeout(10):
            await _hold(gate, go)

    asyncio.run(run())
