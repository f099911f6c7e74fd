"""Work that may wait for a disk, apart from the loop that answers everybody."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

_T = TypeVar("_T")


async def in_thread(work: Callable[[], _T], pool: Executor | None = None) -> _T:
    """The result of `work`; even if it is cancelled, it waits for the thread to end."""
    task = asyncio.ensure_future(asyncio.get_running_loop().run_in_executor(pool, work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
