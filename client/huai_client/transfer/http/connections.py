"""Many requests at a time on few connections, until all jobs are done.

Over HTTP/2 all requests share a connection, or as many as the server's limit of streams makes
necessary; over HTTP/1.1 each connection has one request at a time.  libcurl chooses by what the
server offers under TLS (ALPN).  Which of both it is, the head of the first answer tells: until then
there is one request.

What happens here: redirections are followed, a few, to where `address` lets them; a job whose
connection broke is asked for the rest, as long as anything comes; a server that has enough for now
gets no more.  Everything else is decided by the `Work`.  Rule to keep: nothing waits for longer
than a tick without `watch`, which may end it all by raising.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, Self

import pycurl

from huai_client.config.proxies import Proxy, proxy_for
from huai_client.config.reach import HINT, Reach
from huai_client.config.tls import Tls
from huai_client.metadata.curl.errors import CurlError
from huai_client.metadata.curl.loop import Loop
from huai_client.metadata.curl.redirection import REDIRECTIONS_MOST, RedirectionError, redirected
from huai_client.transfer.errors import TransferError, UpstreamFullError, UpstreamRefusedError
from huai_client.transfer.http.answer import Answer, Meaning
from huai_client.transfer.http.failure import failure_of, is_lasting
from huai_client.transfer.http.job import Job
from huai_client.transfer.http.requests import Circumstances, Request, Traffic
from huai_client.transfer.urls import ContentUrl
from huai_program.urls import same_service, split_url

_TICK = 0.1
_STRIKES_MOST = 3
"""Broken connections in a row by which nothing came."""
_BREAKS_MOST = 5
"""The same for one file, where others come."""
_KIBIBYTE = 1024


class Limits(NamedTuple):
    """What may be taken at a time."""

    connections: int
    requests: int


class Work(Protocol):
    """What there is to ask for, and what becomes of it."""

    def take(self) -> Job | None:
        """The next job; None: there is none now, and none later unless `done` makes one."""

    def done(self, job: Job, answer: Answer) -> None:
        """`answer` is all of it; TAKE: what the job asked for is here."""


class Connections:
    """Connections to the service of one content URL; to be closed, as a context manager.

    One thread uses it at a time.
    """

    def __init__(
        self,
        url: ContentUrl,
        circumstances: Circumstances,
        limits: Limits,
        headers: Sequence[str] = (),
    ) -> None:
        """`headers` go to the service of `url` alone."""
        self._url = url
        self._circumstances = circumstances
        self._limits = limits
        self._headers = headers
        self._again: deque[tuple[Job, list[str]]] = deque()
        self._busy: dict[pycurl.Curl, tuple[Request, int]] = {}
        self._idle: list[Request] = []
        self._strikes = self._epoch = 0
        self._failure: TransferError | None = None
        self._traffic = Traffic()
        self._loop = Loop(limits.connections, limits.requests)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Break off what is in flight, and close all connections."""
        for curl in self._busy:
            self._loop.break_off(curl)
        for request in (*self._idle, *(request for request, _ in self._busy.values())):
            request.close()
        self._loop.close()

    def run(self, work: Work, watch: Callable[[int], None]) -> TransferError | None:
        """Carry out `work`; returns what ended it early.

        `watch` is told every tick how many bytes have come in all.  What it or `work` raises ends
        everything.
        """
        self._failure = None
        began = time.monotonic(), self.received
        while self._fill(work):
            pause = self._ahead(*began)
            if pause > 0:
                time.sleep(min(pause, _TICK))
            else:
                self._loop.step(_TICK)
                self._reap(work)
            watch(self.received)
        return self._failure

    @property
    def received(self) -> int:
        """Bytes that have come, heads included."""
        return self._traffic.received

    @property
    def first_byte(self) -> float:
        """Seconds from a question to its answer, the least of all; 0: not known."""
        return self._traffic.first_byte

    @property
    def busy(self) -> bool:
        """Whether anything is in flight."""
        return bool(self._busy)

    # ------------------------------------------------------------ what is in flight

    def _fill(self, work: Work) -> bool:
        """Begin what may be begun; whether anything is in flight."""
        while self._failure is None and len(self._busy) < self._window:
            if self._again:
                job, hops = self._again.popleft()
            elif (new := work.take()) is not None:
                job, hops = new, []
            else:
                break
            address = hops[-1] if hops else job.address
            same = same_service(address, self._url.source)
            reach = None if same and self._url.own else self._circumstances.reach
            request = self._free(self._circumstances.tls.at(address), reach)
            request.hops = hops
            if reach is not None:
                request.set_proxy(_proxy_for(address))
            request.begin(job, address, self._headers if same else ())
            self._busy[request.curl] = request, self._epoch
            self._loop.begin(request.curl)
        return bool(self._busy)

    @property
    def _window(self) -> int:
        """How many requests there may be at a time."""
        multiplexed = self._traffic.multiplexed
        if multiplexed is None:
            return 1
        connections, requests = self._limits.connections, self._limits.requests
        return requests if multiplexed else min(connections, requests)

    def _free(self, tls: Tls, reach: Reach | None) -> Request:
        """One with nothing to do."""
        for position in reversed(range(len(self._idle))):
            if (self._idle[position].tls, self._idle[position].reach) == (tls, reach):
                return self._idle.pop(position)
        return Request(self._circumstances, tls, reach, self._traffic)

    def _reap(self, work: Work) -> None:
        """Hear of what has ended."""
        for curl, error in self._loop.ended():
            request, epoch = self._busy.pop(curl)
            self._idle.append(request)
            if request.broken is not None:
                raise request.broken
            self._conclude(work, request, epoch, error)

    def _conclude(self, work: Work, request: Request, epoch: int, error: CurlError) -> None:
        """One request has ended."""
        number = error.number
        if number and request.refusal:
            self._refused(work, request)
            return
        if number in (0, pycurl.E_WRITE_ERROR):
            self._strikes = 0
            request.ended()
            self._answered(work, request, request.answer)
            return
        fruitless = request.job.breaks()
        if is_lasting(number) or (fruitless and not self._goes_on(epoch)):
            self._failure = self._failure or failure_of(error, self._url, self._proxy())
        elif fruitless < _BREAKS_MOST:
            self._again.append((request.job, []))
        else:
            work.done(request.job, Answer(Meaning.FAILING, f"the connection breaks: {error.text}"))

    def _refused(self, work: Work, request: Request) -> None:
        """It leads where nobody may send this program."""
        if request.hops:
            reason = f"a redirection to an internal address: {request.refusal}"
            work.done(request.job, Answer(Meaning.UNFIT, reason))
        else:
            said = f"{self._url}: {request.refusal}, and client.toml does not name the URL"
            self._failure = self._failure or UpstreamRefusedError(said, hint=HINT)

    def _proxy(self) -> Proxy | None:
        """The one that the environment names."""
        return _proxy_for(self._url.source)

    def _goes_on(self, epoch: int) -> bool:
        """Whether to ask on after a connection broke.

        Requests that were begun before the last time tell of the same connection.
        """
        if epoch == self._epoch:
            self._epoch += 1
            self._strikes += 1
        return self._strikes < _STRIKES_MOST

    def _answered(self, work: Work, request: Request, answer: Answer) -> None:
        job = request.job
        if answer.meaning is Meaning.ELSEWHERE:
            try:
                self._again.append((job, self._hop(request, answer)))
            except RedirectionError as error:
                work.done(job, Answer(Meaning.UNFIT, str(error)))
        elif answer.meaning is Meaning.FULL:
            self._failure = UpstreamFullError(
                f"{self._url}: {answer.reason}",
                hint="use fewer streams, or sync at another time",
                retry_after=answer.retry_after,
            )
        elif answer.meaning is Meaning.TAKE and not job.is_whole:
            work.done(job, Answer(Meaning.OTHER, f"it ends after {job.position} bytes"))
        else:
            work.done(job, answer)

    @staticmethod
    def _hop(request: Request, answer: Answer) -> list[str]:
        here = request.hops[-1] if request.hops else request.job.address
        target = redirected(here, answer.location)
        if len(request.hops) >= REDIRECTIONS_MOST or target in (request.job.address, *request.hops):
            raise RedirectionError("redirections without an end")
        return [*request.hops, target]

    def _ahead(self, began: float, before: int) -> float:
        """Seconds until the rate allows to read on: meanwhile what comes waits in the network."""
        rate = self._circumstances.rate * _KIBIBYTE
        return began + (self.received - before) / rate - time.monotonic() if rate else 0.0


def _proxy_for(address: str) -> Proxy | None:
    try:
        return proxy_for(split_url(address))
    except ValueError:
        return None
