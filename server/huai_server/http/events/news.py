"""The newest commit of each module as an event, private ones too, and the tasks that wait for it.

A commit is made by another process without notice: while anything listens, the branches are polled,
and the static files, from which downstreams fetch.  A poll costs two small reads for each module,
works on network file systems too, and needs no watch of the kernel.

Rules:

- Only the newest commit of a module is kept: a slow subscriber misses the ones between, and never
  the newest.  So a subscriber needs no queue: it knows the number of the last event that it was
  sent.
- Numbers grow with the clock and not by one: a gap must not reveal commits that a subscriber may
  not see.  They are valid in this run of the server only: `epoch` tells one run from another.
"""

import asyncio
import json
import logging
import secrets
import time
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from huai_schema.errors import HuaiError
from huai_server.http.asgi.threads import in_thread
from huai_server.http.module_facts import ModuleFacts
from huai_server.http.settings import Registry
from huai_server.static.newest import newest_published
from huai_server.store.repository import Head, read_branch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_LOOK_SECONDS = 0.5
_SLICE = 256
"""Subscribers that are woken before other tasks get their turn."""
_log = logging.getLogger(__name__)


class Event(NamedTuple):
    """A new commit of a module."""

    number: int
    """A number greater than those of all events before, in this run of the server."""
    module: str
    data: "Mapping[str, object]"
    """The fields of the commit that are sent."""
    text: bytes
    """The text that subscribers are sent."""


class News:
    """The events of new commits, and the tasks that wait for them."""

    def __init__(self, registry: Registry, facts: ModuleFacts) -> None:
        self._registry = registry
        self._facts = facts
        self._reported: dict[str, tuple[Path, str]] = {}
        self._events: dict[str, Event] = {}
        """The event of each module, in the order of their numbers."""
        self._problems: dict[str, str] = {}
        """Modules that cannot be read, with the state of their branch."""
        self._waiting: set[asyncio.Future[None]] = set()
        self._subscribers = 0
        self._polling: asyncio.Task[None] | None = None
        self._has_polled = asyncio.Event()
        """Set once the first poll is over."""
        self.epoch = secrets.token_hex(8)
        self.number = 0
        self.stopped = False

    async def subscribe(self) -> None:
        """Add a subscriber, and start to poll branches; return when the first poll is over.

        The caller must call `unsubscribe`, also if this is cancelled.
        """
        self._subscribers += 1
        if self._polling is None:
            self._has_polled.clear()
            self._polling = asyncio.ensure_future(self._poll_repeatedly())
        await self._has_polled.wait()

    def unsubscribe(self) -> None:
        """Remove a subscriber; without any, polling ends."""
        self._subscribers -= 1

    def after(self, number: int) -> list[Event]:
        """Return the events with greater numbers than `number`, oldest first: one for each module.

        They include private modules.
        """
        newer: list[Event] = []
        for event in reversed(self._events.values()):
            if event.number <= number:
                break
            newer.append(event)
        newer.reverse()
        return newer

    async def wait(self, seconds: float) -> None:
        """Wait for new events or the stop of the server, at most `seconds`."""
        if self.stopped:
            return
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        timer = loop.call_later(seconds, _end, turn)
        self._waiting.add(turn)
        try:
            await turn
        finally:
            timer.cancel()
            self._waiting.discard(turn)

    def stop(self) -> None:
        """End all waits, for good."""
        self.stopped = True
        for turn in self._waiting:
            _end(turn)

    async def _poll_repeatedly(self) -> None:
        """Poll the branches, and wake waiters, while there are subscribers; errors are logged."""
        while self._subscribers and not self.stopped:
            before = self.number
            try:
                await self._poll()
            except Exception:  # noqa: BLE001 - one failed poll must not end all notifications
                _log.exception("looking for new commits failed; trying again")
            self._has_polled.set()
            if self.number != before:
                await self._wake()
            await asyncio.sleep(_LOOK_SECONDS)
        self._has_polled.set()
        self._polling = None

    async def _wake(self) -> None:
        """Wake all waiters, a slice at a time."""
        waiting = list(self._waiting)
        for at in range(0, len(waiting), _SLICE):
            for turn in islice(waiting, at, at + _SLICE):
                _end(turn)
            await asyncio.sleep(0)

    async def _poll(self) -> None:
        """Add an event for each newest commit that has none; remove those of removed modules."""
        served = self._registry.served()
        modules = {**served.modules, **served.private}
        for name in self._reported.keys() - modules.keys():
            del self._reported[name], self._events[name]
        for name, state in (await in_thread(lambda: _states(modules))).items():
            reported = self._reported.get(name)
            if state is None or reported == (modules[name], state):
                continue
            head = await self._read_head(name, state)
            if head is not None and reported != (modules[name], head.commit):
                self._reported[name] = modules[name], head.commit
                self._add_event(name, head)

    async def _read_head(self, name: str, state: str) -> Head | None:
        """Return the newest commit; None before the first one, or if it cannot be read.

        An error is logged once for each `state`, the commit id in the branch.
        """
        try:
            head = await self._facts.head(name)
        except HuaiError as error:
            if self._problems.get(name) != state:
                self._problems[name] = state
                _log.warning("%s: no event is sent for its new commit: %s", name, error.message)
            return None
        self._problems.pop(name, None)
        return head

    def _add_event(self, name: str, head: Head) -> None:
        """Add the event of a commit, in place of the module's former one."""
        self.number = max(self.number + 1, time.monotonic_ns() // 1_000_000)
        data = {
            "module": name,
            "serial": head.info.serial,
            "commit": head.commit,
            "tree": head.tree,
            "time": head.time,
        }
        text = f"id: {self.epoch}-{self.number}\nevent: commit\ndata: {json.dumps(data)}\n\n"
        self._events.pop(name, None)  # the newest comes last
        self._events[name] = Event(self.number, name, data, text.encode())


def _states(modules: "Mapping[str, Path]") -> dict[str, str | None]:
    """Return the commit (hex id) of each branch, by module.

    None before the first one, and while the static files lack the newest commit.
    """
    states = {name: read_branch(repository) for name, repository in modules.items()}
    for name, state in states.items():
        published = newest_published(modules[name])
        if state and published and published != state:
            states[name] = None
    return states


def _end(turn: "asyncio.Future[None]") -> None:
    """Let the waiter of `turn` continue, unless it does already."""
    if not turn.done():
        turn.set_result(None)
