"""The newest commit of each module as an event, private ones too, and who waits for the next one.

A commit is made by another process, which tells nobody: the branches are looked at, as long as
somebody waits, and the static files, from which downstreams fetch.  Looking costs two small reads
for each module, works on network file systems too, and needs none of the kernel's watches.

Rules:

- Only the newest commit of a module is kept: a subscriber that is slow misses what is between, and
  never the newest.  So a subscriber needs no queue: it knows the number of the last event that it
  was sent.
- Numbers only grow, with the clock and not by one: a gap must not tell of commits that a
  subscriber may not see.  They mean something in this start of the server alone: `epoch` tells one
  from another.
"""

import asyncio
import json
import logging
import secrets
import time
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from huai_schema.errors import HuaiError
from huai_server.http.api import Heads
from huai_server.http.asgi.threads import in_thread
from huai_server.http.git.branch_state import read_branch_state
from huai_server.http.settings import Registry
from huai_server.static.newest import newest_published
from huai_server.store.repository import Head

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_LOOK_SECONDS = 0.5
"""Between two looks at all branches."""
_SLICE = 256
"""So many subscribers are told before others get their turn."""
_log = logging.getLogger(__name__)


class Event(NamedTuple):
    """That a module has a new commit."""

    number: int
    module: str
    said: "Mapping[str, object]"
    """The commit, as others hear of it."""
    text: bytes
    """The same as a message of an event stream."""


class News:
    """What is new, and for whom."""

    def __init__(self, registry: Registry, heads: Heads) -> None:
        self._registry = registry
        self._heads = heads
        self._told: dict[str, tuple[Path, str]] = {}
        """By module: its repository and the commit of its event."""
        self._events: dict[str, Event] = {}
        """By module, in the order of their numbers."""
        self._problems: dict[str, bytes] = {}
        """Modules that cannot be read, at a state of their branch."""
        self._waiting: set[asyncio.Future[None]] = set()
        self._subscribers = 0
        self._looking: asyncio.Task[None] | None = None
        self._looked = asyncio.Event()
        """Whether the first look is over."""
        self.epoch = secrets.token_hex(8)
        self.number = 0
        """Of the newest event."""
        self.stopped = False

    async def join(self) -> None:
        """Look for news as long as there is a subscriber; returns when the first look is over."""
        self._subscribers += 1
        if self._looking is None:
            self._looked.clear()
            self._looking = asyncio.ensure_future(self._look_on())
        await self._looked.wait()

    def leave(self) -> None:
        """One subscriber less."""
        self._subscribers -= 1

    def after(self, number: int) -> list[Event]:
        """The events after that of `number`, oldest first."""
        found: list[Event] = []
        for event in reversed(self._events.values()):
            if event.number <= number:
                break
            found.append(event)
        found.reverse()
        return found

    async def wait(self, seconds: float) -> None:
        """Return when there may be something new, and after so many seconds anyway."""
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
        """Nobody waits any more."""
        self.stopped = True
        for turn in self._waiting:
            _end(turn)

    async def _look_on(self) -> None:
        while self._subscribers and not self.stopped:
            before = self.number
            try:
                await self._look()
            except Exception:  # noqa: BLE001 - else nobody is told of anything any more
                _log.exception("looking for new commits failed; it goes on")
            self._looked.set()
            if self.number != before:
                await self._wake()
            await asyncio.sleep(_LOOK_SECONDS)
        self._looked.set()
        self._looking = None

    async def _wake(self) -> None:
        waiting = list(self._waiting)
        for at in range(0, len(waiting), _SLICE):
            for turn in islice(waiting, at, at + _SLICE):
                _end(turn)
            await asyncio.sleep(0)

    async def _look(self) -> None:
        modules = {**self._registry.modules(), **self._registry.private()}
        for name in self._told.keys() - modules.keys():
            del self._told[name], self._events[name]
        for name, state in (await in_thread(lambda: _states(modules))).items():
            told = self._told.get(name)
            if state is None or told == (modules[name], state.decode()):
                continue
            head = await self._read(name, state)
            if head is not None and told != (modules[name], head.commit):
                self._told[name] = modules[name], head.commit
                self._add(name, head)

    async def _read(self, name: str, state: bytes) -> Head | None:
        try:
            head = await self._heads.read(name)
        except HuaiError as error:
            if self._problems.get(name) != state:
                self._problems[name] = state
                _log.warning("%s: no event for its new commit: %s", name, error.message)
            return None
        self._problems.pop(name, None)
        return head

    def _add(self, name: str, head: Head) -> None:
        self.number = max(self.number + 1, time.monotonic_ns() // 1_000_000)
        said = {
            "module": name,
            "serial": head.info.serial,
            "commit": head.commit,
            "tree": head.tree,
            "time": head.time,
        }
        text = f"id: {self.epoch}-{self.number}\nevent: commit\ndata: {json.dumps(said)}\n\n"
        self._events.pop(name, None)  # the newest stands last
        self._events[name] = Event(self.number, name, said, text.encode())


def _states(modules: "Mapping[str, Path]") -> dict[str, bytes | None]:
    """The state of each branch; None while the static files do not name the commit yet."""
    states = {name: read_branch_state(repository) for name, repository in modules.items()}
    for name, state in states.items():
        published = newest_published(modules[name])
        if state and published and published != state.decode():
            states[name] = None
    return states


def _end(turn: "asyncio.Future[None]") -> None:
    if not turn.done():
        turn.set_result(None)
