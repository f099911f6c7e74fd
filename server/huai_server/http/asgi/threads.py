"""Work that may wait for a disk, in threads apart from the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

_T = TypeVar("_T")


async def in_thread(work: Callable[[], _T], pool: Executor | None = None) -> _T:
    """Call `work` in a thread, and return its result; if cancelled, wait for its end before."""
    task = asyncio.ensure_future(asyncio.get_running_loop().run_in_executor(pool, work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
