"""Run one piece of work under guards that may end it early."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def race(work: Coroutine[Any, Any, T], *guards: Coroutine[Any, Any, None]) -> T:
    """The result of `work`.  A guard that raises cancels it with that error; one that ends is done.

    Returns only after everything it started has ended.
    """
    main = asyncio.ensure_future(work)
    watchers = [asyncio.ensure_future(guard) for guard in guards]
    pending: set[asyncio.Future[Any]] = {main, *watchers}
    try:
        while not main.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for watcher in done & set(watchers):
                if not main.done():
                    watcher.result()
        return main.result()
    finally:
        for task in (main, *watchers):
            task.cancel()
        await asyncio.gather(main, *watchers, return_exceptions=True)
