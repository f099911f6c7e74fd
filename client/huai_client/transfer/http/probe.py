"""Tests a content URL of HTTP by one request, for the folder itself.

Whether a server shows folders says nothing about the files in them: any answer is good that is not
about logins, and none of the server's own failures.
"""

from huai_client.run.deadline import Deadline
from huai_client.transfer.errors import (
    ConnectionBrokenError,
    OutOfTimeError,
    TransferError,
    UpstreamRefusedError,
    UpstreamSilentError,
)
from huai_client.transfer.http.answer import Answer, Asked, Meaning
from huai_client.transfer.http.connect import connections_to
from huai_client.transfer.http.job import Job
from huai_client.transfer.http.login import LOGIN_HINT
from huai_client.transfer.limits import Grant
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.urls import ContentUrl

_ASKED = Asked(0, 1, 1, proved=False, changes=True)


def probe_http(url: ContentUrl, options: TransferOptions) -> TransferError | None:
    """The error of `url`; None: it answers.  Takes a timeout at most."""
    until = Deadline.after(options.timeout)

    def watch(_: int) -> None:
        if until.over:
            raise OutOfTimeError

    with connections_to(url, options, Grant((), 0)) as connections:
        try:
            return connections.run(_Question(url), watch)
        except TransferError as error:
            return error
        except OutOfTimeError:
            return UpstreamSilentError(f"{url}: no answer in time", hint="try again later")


class _Question:
    """A `Work` of one job, and a `Sink` that keeps nothing."""

    def __init__(self, url: ContentUrl) -> None:
        self._url = url
        self._asked = False

    def take(self) -> Job | None:
        if self._asked:
            return None
        self._asked = True
        return Job(self._url.source, _ASKED, self)

    def done(self, _: Job, answer: Answer) -> None:
        said = f"{self._url}: {answer.reason}"
        if answer.meaning is Meaning.LOGIN:
            raise UpstreamRefusedError(said, hint=LOGIN_HINT)
        if answer.meaning is Meaning.FAILING:
            raise ConnectionBrokenError(said, hint="tell its administrator")

    def begin(self, position: int) -> None:
        """Nothing is made ready."""

    def write(self, position: int, data: bytes) -> None:
        """Nothing is kept."""
