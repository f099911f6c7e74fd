"""Git's answers to requests: from memory, from a process that answers an equal one, or a new one.

Knows nothing of HTTP beyond the ASGI `send`.  git writes into a spool and the client reads from it,
so the process and its slot are free before a slow client has read everything.  The length of a
small answer that comes soon is sent along.  An answer is shared if it has at most
`ReplyCache.largest` bytes.
"""

import asyncio
import logging
import time
from collections import Counter
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from huai_program.quoting import quoted
from huai_server.http.asgi.allowance import Allowance
from huai_server.http.asgi.body import Body, race
from huai_server.http.asgi.errors import ClientGoneError, HttpError
from huai_server.http.asgi.limiter import Limiter
from huai_server.http.asgi.responder import Responder
from huai_server.http.git.branch_state import read_branch_state
from huai_server.http.git.reply_cache import Key, ReplyCache
from huai_server.http.git.spool import Spool, Spooled
from huai_server.http.git.upload_pack import Call, Git, UploadPack

GATHER_SECONDS = 1.0
"""How long the first bytes of an answer wait for the rest, so that its length can be sent."""

FOLLOW_SECONDS = 10.0
"""How long a request waits for the answer to an equal one."""

_FOLLOW_ATTEMPTS = 3

_CLIENT_FAULTS = (
    *("protocol error", "hung up", "unknown capability", "invalid command", "expected"),
    *("object format", "object-format", "requested", "deepen", "shallow line", "forbidden"),
    "not negotiated",
)

_log = logging.getLogger(__name__)


class _Outcome(Enum):
    """What requests that wait for a run get instead of an answer."""

    LARGE = "too large to share"
    LOST = "its client went away"


_Result: TypeAlias = bytes | HttpError | _Outcome
_Flight: TypeAlias = "asyncio.Future[_Result]"


@dataclass(frozen=True, slots=True)
class Question:
    """One request to git."""

    call: Call
    key: Key | None
    """None: its answer is not shared."""
    body: Body | None
    """None for an advert."""
    limiter: Limiter
    """Gives the slot for its process."""
    address: str
    """Of the client, for the limits; empty: unknown."""
    allowance: Allowance | None = None
    """The allowance of the address; None if the request costs little."""


class SingleFlight:
    """All answers of one server."""

    def __init__(self, git: Git, cache: ReplyCache, spool: Spool, patience: float) -> None:
        """Whoever has a key may ask `cache` directly (`SingleFlight.cache.get`).

        `patience`: after so many seconds without output git counts as stuck, and is killed.
        """
        self._git = git
        self.cache = cache
        self.spool = spool
        self.patience = patience
        self.answered: Counter[str] = Counter(memory=0, file=0, shared=0, git=0)
        """Answers by where they came from; who sends one counts it."""
        self._flights: dict[Key, _Flight] = {}

    async def answer(self, question: Question, out: Responder) -> None:
        """Answer one request on `out`."""
        key = question.key
        for _ in range(_FOLLOW_ATTEMPTS):
            if key is None:
                break
            ready = self.cache.get(key)
            if ready is not None:
                self.answered["memory"] += 1
                await out.whole(ready)
                return
            flight = self._flights.get(key)
            if flight is None:
                await self._lead(_Run(self, question, key, out), key)
                return
            result = await _follow(flight)
            if isinstance(result, bytes):
                self.answered["shared"] += 1
                await out.whole(result)
                return
            if isinstance(result, HttpError):
                raise result
            if result is _Outcome.LARGE:
                break
        await _Run(self, question, None, out).go()

    async def _lead(self, run: "_Run", key: Key) -> None:
        self._flights[key] = run.flight
        try:
            await run.go()
        except HttpError as error:
            run.settle(error)
            raise
        finally:
            run.settle(_Outcome.LOST)
            del self._flights[key]

    def start(self, call: Call) -> AbstractAsyncContextManager[UploadPack]:
        """A process for `call`."""
        return self._git.start(call)


class _Run:
    """One process, for one request and perhaps for equal ones that wait for its answer."""

    def __init__(
        self, answers: SingleFlight, question: Question, key: Key | None, out: Responder
    ) -> None:
        self._answers = answers
        self._question = question
        self._key = key
        self._out = out
        self._streaming = False
        """Whether the answer is sent before its length is known."""
        self.flight: _Flight = asyncio.get_running_loop().create_future()

    def settle(self, result: _Result) -> None:
        """Give the result to the requests that wait; only the first call counts."""
        if not self.flight.done():
            self.flight.set_result(result)

    async def go(self) -> None:
        if self._question.allowance is not None:
            self._question.allowance.check(self._question.address)
        self._answers.answered["git"] += 1
        async with self._answers.spool.answer() as spooled:
            await race(self._send(spooled), self._produce(spooled))

    async def _produce(self, spooled: Spooled) -> None:
        """Put git's whole answer into the spool; then the slot is free again."""
        question = self._question
        async with question.limiter.slot(question.address):
            begun = time.monotonic()
            try:
                async with self._answers.start(question.call) as child:
                    await race(self._relay(child, spooled), child.feed(question.body))
            finally:
                if question.allowance is not None:
                    question.allowance.spend(question.address, time.monotonic() - begun)

    async def _relay(self, child: UploadPack, spooled: Spooled) -> None:
        kept: list[bytes] = []
        largest = self._answers.cache.largest
        while chunk := await self._next(child):
            if self._key is not None and spooled.size <= largest:
                kept.append(chunk)
                if spooled.size + len(chunk) > largest:
                    kept.clear()
                    self.settle(_Outcome.LARGE)
            await spooled.put(chunk)
        clean = await self._ended_well(child, spooled)
        if self._key is not None and spooled.size <= largest:
            self._share(self._key, b"".join(kept), clean=clean)
        await spooled.end()

    async def _send(self, spooled: Spooled) -> None:
        """Send the spooled answer to the client, with its length if that is known soon."""
        await spooled.grown(0)
        with suppress(TimeoutError):
            async with asyncio.timeout(GATHER_SECONDS):
                await spooled.grown(self._answers.cache.largest)
        if spooled.ended:
            await self._out.begin(spooled.size)
        self._streaming = not spooled.ended
        while chunk := await spooled.get():
            await self._out.piece(chunk)
        await self._out.end()

    async def _next(self, child: UploadPack) -> bytes:
        try:
            async with asyncio.timeout(self._answers.patience):
                return await child.read()
        except TimeoutError:
            _log.error("git upload-pack on %s is stuck; ended", self._question.call.repository)
            if self._streaming:
                raise ClientGoneError("git stopped answering") from None
            raise HttpError(504, "git did not answer in time", hint="try again later") from None

    async def _ended_well(self, child: UploadPack, spooled: Spooled) -> bool:
        """Whether the process ended well; raises if its failure cannot be part of the answer."""
        code, talk = await child.finish()
        if not code:
            return True
        repository = self._question.call.repository
        fault = _is_fault_of_client(talk)
        level = logging.INFO if fault else logging.WARNING
        _log.log(level, "git upload-pack on %s ended with %d: %s", repository, code, quoted(talk))
        if self._streaming:
            raise ClientGoneError("git failed inside its answer")
        if not spooled.size:
            # Not git's own text, which holds paths.
            raise _misunderstood() if fault else _unreadable()
        return False  # an ERR packet: git's own words to its client

    def _share(self, key: Key, answer: bytes, *, clean: bool) -> None:
        self.settle(answer)
        # The branch may have moved between this program's reading of it and git's.
        if clean and read_branch_state(self._question.call.repository) == key.state:
            self._answers.cache.put(key, answer)


async def _follow(flight: _Flight) -> _Result:
    """The result of a run in flight; LARGE also if it does not come soon."""
    try:
        async with asyncio.timeout(FOLLOW_SECONDS):
            return await asyncio.shield(flight)
    except TimeoutError:
        return _Outcome.LARGE


def _is_fault_of_client(talk: str) -> bool:
    return any(sign in talk for sign in _CLIENT_FAULTS)


def _misunderstood() -> HttpError:
    return HttpError(400, "git does not understand this request")


def _unreadable() -> HttpError:
    return HttpError(500, "the metadata repository cannot be read", hint="see the server's log")
