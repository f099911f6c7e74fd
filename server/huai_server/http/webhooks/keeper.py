"""The delivery of commits to web hooks: one task for each hook, attempts in separate threads.

No state is kept on the disk: when the server starts, each hook is notified of the newest commit,
because a former delivery is not recorded.  So a hook may get a commit twice, and never misses the
newest one for good.

Rules:

- A commit never waits for a hook, and never fails because of one.
- The signature covers the whole body, which has the time of sending: a receiver that checks both
  cannot be fooled by a replayed request.
- The name is resolved once; an internal address is refused unless the configuration allows it.
- A hook has one attempt in flight.  If a newer commit comes while it is retried, that one is sent
  instead.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Container, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

import tenacity

from huai_program.post import Hook, PostError, post
from huai_program.quoting import quoted
from huai_server.config.tables import WebHook
from huai_server.http.asgi.threads import in_thread
from huai_server.http.events.news import Event, News
from huai_server.http.resolver import UnreachableError, for_libcurl
from huai_server.http.settings import Registry

_SECONDS = 30
_GOOD = range(200, 300)
_PASSING = {408, 425, 429}
_OF_THE_SERVER = 500
"""From this status on another attempt may help."""


def origin_of(url: str) -> str:
    """Return scheme and host of a hook for a log: paths and queries of hooks are often secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def deliver(
    hook: WebHook, data: Mapping[str, object], identity: str, is_over: Callable[[], bool]
) -> None:
    """Send `data` to `hook` once, in a signed POST; `is_over` is polled for a reason to stop.

    `identity` names the delivery in all its attempts.  Every failure is an `UnreachableError`.
    """
    try:
        addresses = for_libcurl(hook.url, internal=hook.internal)
        status = post(
            Hook(hook.url, "huai-server", _SECONDS, hook.secret_file, addresses),
            {**data, "delivery": identity, "sent": int(time.time())},
            {"X-Huai-Event": "commit", "X-Huai-Delivery": identity},
            is_over,
        )
    except PostError as error:
        raise UnreachableError(str(error), may_pass=True) from error
    except OSError as error:
        raise UnreachableError(
            f"{hook.secret_file}: {error.strerror}",
            may_pass=False,
            hint="make it readable for the user who runs serve",
        ) from error
    except ValueError as error:
        raise UnreachableError(
            str(error), may_pass=False, hint="write the secret into it"
        ) from None
    if status not in _GOOD:
        raise UnreachableError(
            f"HTTP {status}", may_pass=status in _PASSING or status >= _OF_THE_SERVER
        )


_THREADS = 8
_ATTEMPTS = 8
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 120.0
"""Seconds; about four minutes in all."""
_LOOK_SECONDS = 5.0
_log = logging.getLogger(__name__)

_Hooks = Mapping[tuple[str, str], WebHook]


class Delivery(NamedTuple):
    """The last delivery to a hook that ended."""

    module: str
    origin: str
    """Scheme and host of the hook."""
    serial: object
    begun: int
    """Seconds since the epoch."""
    seconds: float
    """The time until it succeeded or was given up."""
    error: str
    """The error of the last attempt; empty if the hook got the commit."""


class WebHooks:
    """The hooks of one server."""

    def __init__(self, registry: Registry, news: News) -> None:
        self._registry = registry
        self._news = news
        self._tasks: dict[tuple[str, str], tuple[WebHook, asyncio.Task[None]]] = {}
        self._deliveries: dict[tuple[str, str], Delivery] = {}
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="webhook")

    def deliveries(self, modules: Container[str]) -> list[Delivery]:
        """Return the last delivery to each hook of these modules since the server's start."""
        return [each for each in self._deliveries.values() if each.module in modules]

    async def run(self) -> None:
        """Notify hooks of commits until the server stops; returns when all attempts have ended."""
        while not self._news.stopped:
            modules = self._registry.served().settings.items()
            self._follow_hooks(
                {(name, hook.url): hook for name, module in modules for hook in module.webhooks}
            )
            await self._news.wait(_LOOK_SECONDS)
        await asyncio.gather(*(task for _, task in self._tasks.values()), return_exceptions=True)
        self._pool.shutdown()

    def _follow_hooks(self, hooks: _Hooks) -> None:
        """Start a task for each new hook, and cancel those of changed and removed ones."""
        for key, (hook, task) in list(self._tasks.items()):
            if hooks.get(key) != hook or task.done():
                task.cancel()
                del self._tasks[key]
                self._deliveries.pop(key, None)
        for key, hook in hooks.items():
            if key not in self._tasks:
                self._tasks[key] = hook, asyncio.ensure_future(self._serve_hook(key[0], hook))

    async def _serve_hook(self, module: str, hook: WebHook) -> None:
        """Wait for commits of a module, and send each to the hook, until the server stops."""
        try:
            await self._news.subscribe()
            number = 0
            while not self._news.stopped:
                event = self._newest(module, number)
                if event is None:
                    await self._news.wait(60)
                    continue
                number = event.number
                await self._notify(hook, event)
        finally:
            self._news.unsubscribe()

    def _newest(self, module: str, number: int) -> Event | None:
        """Return the newest event of a module, if its number is above `number`, or None."""
        return next((each for each in self._news.after(number) if each.module == module), None)

    async def _notify(self, hook: WebHook, event: Event) -> None:
        """Notify a hook of a commit, with retries for some minutes; log it if all fail.

        Gives up for a failure that will not pass, a newer commit, or the stop of the server.
        """
        identity = secrets.token_hex(16)
        data = {"event": "commit", **event.data}
        attempt = partial(deliver, hook, data, identity, lambda: self._news.stopped)

        def is_no_use() -> bool:
            """True if the server stops, or the module has a newer event."""
            return self._news.stopped or self._newest(event.module, event.number) is not None

        async def pause(seconds: float) -> None:
            """Wait for `seconds`, or until the notification is of no use."""
            end = time.monotonic() + seconds
            while (left := end - time.monotonic()) > 0 and not is_no_use():
                await self._news.wait(left)

        begun, start, failure = int(time.time()), time.monotonic(), ""
        try:
            async for retry in tenacity.AsyncRetrying(
                stop=tenacity.stop_after_attempt(_ATTEMPTS),
                wait=tenacity.wait_exponential_jitter(_FIRST_PAUSE, _LONGEST_PAUSE, jitter=2),
                retry=tenacity.retry_if_exception(
                    lambda error: (
                        isinstance(error, UnreachableError) and error.may_pass and not is_no_use()
                    )
                ),
                sleep=pause,
                reraise=True,
            ):
                with retry:
                    await in_thread(attempt, self._pool)
        except UnreachableError as error:
            failure = error.message
            hint = f" ({error.hint})" if error.hint else ""
            _log.warning(
                "%s: %s was not notified of serial %s: %s%s",
                event.module,
                origin_of(hook.url),
                event.data["serial"],
                quoted(error.message),
                hint,
            )
        origin, spent = origin_of(hook.url), time.monotonic() - start
        delivery = Delivery(event.module, origin, event.data["serial"], begun, spent, failure)
        self._deliveries[event.module, hook.url] = delivery
