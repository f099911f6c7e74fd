"""Tests a content URL of HTTP by one request, for the folder itself.

A server that shows no folders may have the files in them: any response is good except those about
logins, and the server's own failures.
"""

from huai_client.run.deadline import Deadline
from huai_client.transfer.errors import (
    ConnectionBrokenError,
    OutOfTimeError,
    TransferError,
    UpstreamRefusedError,
    UpstreamSilentError,
)
from huai_client.transfer.http.connect import connections_to
from huai_client.transfer.http.job import Job
from huai_client.transfer.http.login import LOGIN_HINT
from huai_client.transfer.http.verdict import Meaning, RequestedRange, Verdict
from huai_client.transfer.limits import Grant
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.urls import ContentUrl

_FIRST_BYTE = RequestedRange(0, 1, 1, proved=False, changes=True)


def probe_http(url: ContentUrl, options: TransferOptions) -> TransferError | None:
    """Return the error of `url`, or None if it responds.  Takes one timeout at most."""
    until = Deadline.after(options.timeout)

    def watch(_: int) -> None:
        if until.over:
            raise OutOfTimeError

    with connections_to(url, options, Grant((), 0)) as connections:
        try:
            return connections.run(_ProbeWork(url), watch)
        except TransferError as error:
            return error
        except OutOfTimeError:
            return UpstreamSilentError(f"{url}: no response in time", hint="try again later")


class _ProbeWork:
    """A `Work` of one job, and a `Sink` that discards the data."""

    def __init__(self, url: ContentUrl) -> None:
        self._url = url
        self._started = False

    def next_job(self) -> Job | None:
        if self._started:
            return None
        self._started = True
        return Job(self._url.source, _FIRST_BYTE, self)

    def done(self, _: Job, verdict: Verdict) -> None:
        message = f"{self._url}: {verdict.reason}"
        if verdict.meaning is Meaning.LOGIN:
            raise UpstreamRefusedError(message, hint=LOGIN_HINT)
        if verdict.meaning is Meaning.FAILING:
            raise ConnectionBrokenError(message, hint="tell its administrator")

    def begin(self, position: int) -> None:
        """Prepare nothing."""

    def write(self, position: int, data: bytes) -> None:
        """Discard `data`."""
