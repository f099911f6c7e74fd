"""Keeps web hooks in step with commits: one task for each, attempts in threads of their own.

Nothing is kept on the disk: when the server starts, each hook is told of the newest commit, since
nobody knows whether it was before.  So a hook may hear of a commit twice, and never misses the
newest one for good.

Rules:

- A commit waits for nobody here, and fails for nobody.
- A hook has one attempt in flight.  If a newer commit comes while it is tried again and again, that
  one is told instead.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import tenacity

from huai_program.quoting import quoted
from huai_server.http.asgi.threads import in_thread
from huai_server.http.events.news import Event, News
from huai_server.http.settings import Registry, WebHook
from huai_server.http.webhooks.delivery import DeliveryError, deliver, shown

_THREADS = 8
_ATTEMPTS = 8
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 120.0
"""Seconds, about four minutes altogether."""
_LOOK_SECONDS = 5.0
"""Between two looks at the configuration."""
_log = logging.getLogger(__name__)

_Hooks = Mapping[tuple[str, str], WebHook]


class WebHooks:
    """The hooks of one server."""

    def __init__(self, registry: Registry, news: News) -> None:
        """Hooks come from `registry`, which may change at any time."""
        self._registry = registry
        self._news = news
        self._tasks: dict[tuple[str, str], tuple[WebHook, asyncio.Task[None]]] = {}
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="webhook")

    async def run(self) -> None:
        """Tell hooks of commits until the server stops."""
        while not self._news.stopped:
            self._take({(name, hook.url): hook for name, hook in self._registry.webhooks()})
            await self._news.wait(_LOOK_SECONDS)
        await asyncio.gather(*(task for _, task in self._tasks.values()), return_exceptions=True)
        self._pool.shutdown()

    def _take(self, hooks: _Hooks) -> None:
        for key, (hook, task) in list(self._tasks.items()):
            if hooks.get(key) != hook or task.done():
                task.cancel()
                del self._tasks[key]
        for key, hook in hooks.items():
            if key not in self._tasks:
                self._tasks[key] = hook, asyncio.ensure_future(self._keep(key[0], hook))

    async def _keep(self, module: str, hook: WebHook) -> None:
        try:
            await self._news.join()
            number = 0
            while not self._news.stopped:
                event = self._newest(module, number)
                if event is None:
                    await self._news.wait(60)
                    continue
                number = event.number
                await self._tell(hook, event)
        finally:
            self._news.leave()

    def _newest(self, module: str, number: int) -> Event | None:
        return next((each for each in self._news.after(number) if each.module == module), None)

    async def _tell(self, hook: WebHook, event: Event) -> None:
        """Tell of one commit, or say in the log that it was not possible."""
        identity = secrets.token_hex(16)
        said = {"event": "commit", **event.said}
        attempt = partial(deliver, hook, said, identity, lambda: self._news.stopped)

        def is_no_use() -> bool:
            return self._news.stopped or self._newest(event.module, event.number) is not None

        async def pause(seconds: float) -> None:
            end = time.monotonic() + seconds
            while (left := end - time.monotonic()) > 0 and not is_no_use():
                await self._news.wait(left)

        try:
            async for each in tenacity.AsyncRetrying(
                stop=tenacity.stop_after_attempt(_ATTEMPTS),
                wait=tenacity.wait_exponential_jitter(_FIRST_PAUSE, _LONGEST_PAUSE, jitter=2),
                retry=tenacity.retry_if_exception(
                    lambda error: (
                        isinstance(error, DeliveryError) and error.may_pass and not is_no_use()
                    )
                ),
                sleep=pause,
                reraise=True,
            ):
                with each:
                    await in_thread(attempt, self._pool)
        except DeliveryError as error:
            hint = f" ({error.hint})" if error.hint else ""
            _log.warning(
                "%s: %s was not told of serial %s: %s%s",
                event.module,
                shown(hook.url),
                event.said["serial"],
                quoted(error.message),
                hint,
            )
