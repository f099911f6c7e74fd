"""Many requests at a time on few connections, until all jobs are done.

Over HTTP/2 all requests share a connection, or as many as the server's limit of streams requires;
over HTTP/1.1 each connection has one request at a time.  libcurl chooses by the server's offer
under TLS (ALPN).  The head of the first response shows which one it is: until then there is one
request.

Done here: a few redirects are followed, to where `address` permits; after a broken connection a job
requests the rest, as long as data arrive; a server that is full gets no more requests.  Everything
else is decided by the `Work`.  Rule: nothing waits for longer than a tick without `watch`, which
may end the run by raising.
"""

import os
import resource
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import pycurl

from huai_client.config.allowed_addresses import HINT, AllowedAddresses
from huai_client.config.proxies import Proxy, proxy_for
from huai_client.config.tls import Tls, check_key
from huai_client.metadata.curl.errors import CurlError
from huai_client.metadata.curl.head import REDIRECTIONS_MOST, RedirectionError, redirect_target
from huai_client.metadata.curl.loop import Loop
from huai_client.transfer.errors import TransferError, UpstreamFullError, UpstreamRefusedError
from huai_client.transfer.http.failure import failure_of, is_permanent
from huai_client.transfer.http.job import Job
from huai_client.transfer.http.login import headers_for
from huai_client.transfer.http.requests import Circumstances, ContentRequest, Traffic
from huai_client.transfer.http.verdict import Meaning, Verdict
from huai_client.transfer.limits import Grant
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.urls import ContentUrl
from huai_program.urls import same_service, split_url

_TICK = 0.1
_STRIKES_MOST = 3
"""Broken connections in a row that brought no data."""
_BREAKS_MOST = 5
"""The same for one file, while others arrive."""
_KIBIBYTE = 1024


class Limits(NamedTuple):
    """Limits on concurrent connections and requests."""

    connections: int
    requests: int


class Work(Protocol):
    """The source of jobs, which also receives their verdicts."""

    def next_job(self) -> Job | None:
        """Return the next job; None ends the run, unless `end_job` makes another job."""

    def end_job(self, job: Job, verdict: Verdict) -> None:
        """Receive the final verdict on a job; TAKE: the requested bytes have arrived."""


class Connections(AbstractContextManager["Connections"]):
    """Connections to the service of one content URL, as a context manager.

    One thread uses it at a time.
    """

    def __init__(
        self,
        url: ContentUrl,
        circumstances: Circumstances,
        limits: Limits,
        headers: Sequence[str] = (),
    ) -> None:
        """`headers` are sent to the service of `url` alone."""
        self._url = url
        self._circumstances = circumstances
        self._limits = limits
        self._headers = headers
        self._waiting_jobs: deque[tuple[Job, list[str]]] = deque()
        self._busy: dict[pycurl.Curl, tuple[ContentRequest, int]] = {}
        self._idle: list[ContentRequest] = []
        self._strikes = self._epoch = 0
        self._failure: TransferError | None = None
        self.traffic = Traffic()
        """The data received so far."""
        self._loop = Loop(limits.connections, limits.requests)

    def __exit__(self, *_: object) -> None:
        """Abort the requests in progress, and close all connections."""
        for curl in self._busy:
            self._loop.break_off(curl)
        for request in (*self._idle, *(request for request, _ in self._busy.values())):
            request.close()
        self._loop.close()

    def run(self, work: Work, watch: Callable[[int], None]) -> TransferError | None:
        """Carry out `work`; return the failure that ended it early, or None.

        `watch` is called every tick with the number of bytes received.  An exception of it or of
        `work` ends the run.
        """
        self._failure = None
        began = time.monotonic(), self.traffic.received
        while self._fill(work):
            pause = self._delay(*began)
            if pause > 0:
                time.sleep(min(pause, _TICK))
            else:
                self._loop.step(_TICK)
                self._reap(work)
            watch(self.traffic.received)
        return self._failure

    @property
    def busy(self) -> bool:
        """True if any request is in progress."""
        return bool(self._busy)

    def _fill(self, work: Work) -> bool:
        """Start requests up to `_window`, none after a lasting failure of the URL.

        Returns True if any is in progress.
        """
        while self._failure is None and len(self._busy) < self._window:
            if self._waiting_jobs:
                job, hops = self._waiting_jobs.popleft()
            elif (new := work.next_job()) is not None:
                job, hops = new, []
            else:
                break
            address = hops[-1] if hops else job.address
            same = same_service(address, self._url.source)
            allowed = None if same and self._url.own else self._circumstances.allowed_addresses
            request = self._idle_request(self._circumstances.tls.at(address), allowed)
            request.hops = hops
            if allowed is not None:
                request.set_proxy(_proxy_for(address))
            request.begin(job, address, self._headers if same else ())
            self._busy[request.curl] = request, self._epoch
            self._loop.begin(request.curl)
        return bool(self._busy)

    @property
    def _window(self) -> int:
        """The number of requests at a time; 1 until the first response."""
        multiplexed = self.traffic.multiplexed
        if multiplexed is None:
            return 1
        connections, requests = self._limits.connections, self._limits.requests
        return requests if multiplexed else min(connections, requests)

    def _idle_request(self, tls: Tls, allowed: AllowedAddresses | None) -> ContentRequest:
        """Return an idle request of these settings, which is idle no more, or make one."""
        for position, idle in reversed([*enumerate(self._idle)]):
            if (idle.tls, idle.allowed_addresses) == (tls, allowed):
                return self._idle.pop(position)
        return ContentRequest(self._circumstances, tls, allowed, self.traffic)

    def _reap(self, work: Work) -> None:
        """Conclude the requests that ended; raise the error of a callback."""
        for curl, error in self._loop.ended():
            request, epoch = self._busy.pop(curl)
            self._idle.append(request)
            if request.broken is not None:
                raise request.broken
            self._conclude(work, request, epoch, error)

    def _conclude(self, work: Work, request: ContentRequest, epoch: int, error: CurlError) -> None:
        """Pass a job that ended to `work`, or request its rest; a lasting failure ends the run."""
        number = error.number
        if number and request.refusal:
            self._conclude_refusal(work, request)
            return
        if number in (0, pycurl.E_WRITE_ERROR):
            self._strikes = 0
            request.ended()
            self._conclude_response(work, request, request.verdict)
            return
        fruitless = request.job.record_break()
        if is_permanent(number) or (fruitless and not self._may_continue(epoch)):
            self._failure = self._failure or failure_of(error, self._url, self._proxy())
        elif fruitless < _BREAKS_MOST:
            self._waiting_jobs.append((request.job, []))
        else:
            reason = f"the connection breaks: {error.text}"
            work.end_job(request.job, Verdict(Meaning.FAILING, reason))

    def _conclude_refusal(self, work: Work, request: ContentRequest) -> None:
        """Give up a URL whose address is not permitted; for a redirect, only its file."""
        if request.hops:
            reason = f"a redirect to an internal address: {request.refusal}"
            work.end_job(request.job, Verdict(Meaning.UNFIT, reason))
        else:
            message = f"{self._url}: {request.refusal}, and client.toml does not name the URL"
            self._failure = self._failure or UpstreamRefusedError(message, hint=HINT)

    def _proxy(self) -> Proxy | None:
        """The proxy for the URL; None without one."""
        return _proxy_for(self._url.source)

    def _may_continue(self, epoch: int) -> bool:
        """Record a broken connection; return True if requests may continue.

        Requests that were started before the last break belong to the same connection.
        """
        if epoch == self._epoch:
            self._epoch += 1
            self._strikes += 1
        return self._strikes < _STRIKES_MOST

    def _conclude_response(self, work: Work, request: ContentRequest, verdict: Verdict) -> None:
        """Follow a redirect, note a failure if the server is full, or pass the verdict to `work`.

        A body of the wrong length is passed on as `OTHER`.
        """
        job = request.job
        if verdict.meaning is Meaning.REDIRECT:
            try:
                self._waiting_jobs.append((job, self._follow(request, verdict)))
            except RedirectionError as error:
                work.end_job(job, Verdict(Meaning.UNFIT, str(error)))
        elif verdict.meaning is Meaning.FULL:
            message = f"{self._url}: {verdict.reason}"
            self._failure = UpstreamFullError(message, verdict.retry_after)
        elif verdict.meaning is Meaning.TAKE and not job.is_whole:
            work.end_job(job, Verdict(Meaning.OTHER, f"it ends after {job.position} bytes"))
        else:
            work.end_job(job, verdict)

    @staticmethod
    def _follow(request: ContentRequest, verdict: Verdict) -> list[str]:
        """Return the addresses after one more redirect.

        Raises `RedirectionError` for a loop, and after too many.
        """
        address = request.hops[-1] if request.hops else request.job.address
        target = redirect_target(address, verdict.location)
        if len(request.hops) >= REDIRECTIONS_MOST or target in (request.job.address, *request.hops):
            raise RedirectionError("redirects without an end")
        return [*request.hops, target]

    def _delay(self, began: float, before: int) -> float:
        """Return the seconds until the rate permits reading; data wait in the network.

        `before`: the bytes received at `began`, a time of the monotonic clock.
        """
        rate = self._circumstances.rate * _KIBIBYTE
        return began + (self.traffic.received - before) / rate - time.monotonic() if rate else 0.0


def _proxy_for(address: str) -> Proxy | None:
    """Return the proxy for an address by the environment; None without one."""
    try:
        return proxy_for(split_url(address))
    except ValueError:
        return None


_SHARE = 4
"""A request may hold a file open: all streams together use a quarter of the free handles."""


def connections_to(url: ContentUrl, options: TransferOptions, grant: Grant) -> Connections:
    """Return connections within `grant`; none is opened before the first request.

    Raises the errors of `headers_for`, and `TlsError` for unusable certificates.
    """
    check_key(options.tls.files)
    return Connections(
        url,
        Circumstances(options.tls, options.contimeout, grant.bwlimit, options.allowed_addresses),
        Limits(grant.connections, min(options.hosts.requests(url.service), _files_open(options))),
        headers_for(url, options.http_headers),
    )


def _files_open(options: TransferOptions) -> int:
    """Return how many files a stream may have open."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = most - len(os.listdir("/proc/self/fd"))
    return max(1, free // _SHARE // options.streams)
