"""Several metadata URLs of one module: the first decides, the others replace it when it fails.

Rules:

- The URLs are tried in order, those that failed recently last, until one responds.  Any failure,
  an unknown module and a forged commit included, leads to the next URL.
- A response that is older than the local metadata is ignored as long as another URL has a newer
  one.  If none has, the first URL's response is returned, and the caller refuses it; if the first
  URL failed, the others are not used (`BehindError`), and the applied commit stays.
- If no URL responds and one of the failures is temporary, all are tried again, after a pause that
  doubles, with jitter.  A Retry-After makes it longer; if that is too long to wait for, the run
  ends.
- If all fail, the first URL's failure is raised.
- A file that a copy of the repository may lack, such as a block index, is requested from each URL
  in turn.
"""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from huai_client.metadata.http import (
    IncompleteCopyError,
    MetadataUrl,
    NotServedError,
    RolledBackError,
    UpstreamDownError,
    UpstreamError,
    server_and_module,
)
from huai_client.metadata.newest import Newest
from huai_client.run.options import NEVER, Deadline
from huai_client.run.retry import Backoff, retry
from huai_client.state.upstreams import UpstreamHealth
from huai_schema.errors import ExitCode, FormatError, HuaiError

_BACKOFF = Backoff(retries=2, first=0.5, longest=60.0)
_REPORTED_PAUSE = 2.0
"""Seconds; shorter pauses are not reported."""

T = TypeVar("T")


class UntrustedError(HuaiError):
    """A commit without a signature by a trusted key."""

    exit_code = ExitCode.UNSIGNED


Failure = UpstreamError | FormatError | UntrustedError


class BehindError(UpstreamError):
    """No URL that responds has newer metadata than are here, and the first one failed."""


class _AllFailedError(Exception):
    """All URLs failed; a retry may succeed."""

    def __init__(self, retry_after: float) -> None:
        super().__init__()
        self.retry_after = retry_after


class Failover:
    """The URLs of one module in one run; the one that responded is tried first from then on."""

    def __init__(
        self,
        urls: Sequence[MetadataUrl],
        health: UpstreamHealth,
        *,
        on_message: Callable[[str], None] = lambda _: None,
        deadline: Deadline = NEVER,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`urls`, at least one, are in the order of preference; `pause` sleeps for some seconds.

        `on_message` is called with each reason for a pause and each failure of one of several URLs,
        each text once.
        """
        self.urls = tuple(dict.fromkeys(urls))
        self._health = health
        self._on_message = on_message
        self._reported: set[str] = set()
        self._deadline = deadline
        self._pause = pause
        self._answered: MetadataUrl | None = None
        self._lacking: set[MetadataUrl] = set()
        self.newest: Newest | None = None
        """The newest commit that the last responding URL has, if it is known and not taken yet."""

    @property
    def first(self) -> MetadataUrl:
        """The URL that decides."""
        return self.urls[0]

    def take_newest(self, url: MetadataUrl) -> Newest | None:
        """Return the remembered commit, and forget it; None unless `url` responded last."""
        if url != self._answered:
            return None
        newest, self.newest = self.newest, None
        return newest

    def first_answer(
        self, fetch: Callable[[MetadataUrl], T], is_behind: Callable[[T], bool] = lambda _: False
    ) -> T:
        """Return the first response of `fetch` that is not behind, else that of the first URL.

        Tries the URLs in order, and again after a pause if a failure is temporary.  Raises
        `BehindError` if the first URL failed and the others are behind, or the first URL's failure.
        """
        failures: dict[MetadataUrl, Failure] = {}

        def try_all() -> T:
            """Return the first answer of a round; raises `_AllFailedError` without one."""
            answers = self._round(fetch, is_behind, failures)
            if not answers:
                raise _AllFailedError(self._retry_delay(failures))
            return answers[0]

        return self._retry(try_all, failures)

    def first_found(self, fetch: Callable[[MetadataUrl], T | None]) -> T | None:
        """Return the result of the first URL that has one; None if no responding URL does.

        A URL that lacks it is tried last for the next file.  Raises the failure of the first URL
        if all fail.
        """
        failures: dict[MetadataUrl, Failure] = {}

        def try_all() -> T | None:
            """Return the first result, or None if no URL that responds has one.

            Raises `_AllFailedError` if none responds.
            """
            answered = False
            for url in sorted(self._ordered(), key=self._lacking.__contains__):
                try:
                    result = fetch(url)
                except (UpstreamError, FormatError) as error:
                    self._failed(url, error)
                    failures[url] = error
                    continue
                if result is not None:
                    return result
                answered = True
                self._lacking.add(url)
            if not answered:
                raise _AllFailedError(self._retry_delay(failures))
            return None

        return self._retry(try_all, failures)

    def _retry(self, try_all: Callable[[], T], failures: dict[MetadataUrl, Failure]) -> T:
        """Return the result of `try_all`, with retries; at last raise the first URL's failure."""

        def pause(seconds: float) -> None:
            """Wait, and report a long pause."""
            if seconds >= _REPORTED_PAUSE:
                self.report(f"{failures[self.first].message}; next attempt in {seconds:.0f} s")
            self._pause(seconds)

        try:
            return retry(try_all, _AllFailedError, _BACKOFF, pause)
        except _AllFailedError:
            raise _explain(self.first, failures[self.first]) from None

    def _retry_delay(self, failures: dict[MetadataUrl, Failure]) -> float:
        """Return the shortest Retry-After of temporary failures, in seconds; 0 without one.

        The usual pause is added to it.  Raises the failure of the first URL if none is temporary,
        or if the wait is over a minute or passes the deadline.
        """
        temporary = [each for each in failures.values() if isinstance(each, UpstreamDownError)]
        wait = min((each.retry_after for each in temporary), default=_BACKOFF.longest + 1)
        if wait > _BACKOFF.longest or wait + _BACKOFF.first > self._deadline.left:
            raise _explain(self.first, failures[self.first])
        return wait

    def _round(
        self,
        fetch: Callable[[MetadataUrl], T],
        is_behind: Callable[[T], bool],
        failures: dict[MetadataUrl, Failure],
    ) -> list[T]:
        """Try each URL once, until a response is not behind; add errors to `failures`.

        Returns one response, that of the first URL if all are behind; none if all fail.  Raises
        `BehindError`, or the first URL's `UntrustedError`, if that URL fails and others are behind.
        A `RolledBackError` of `fetch` is such a response, too.
        """
        late: dict[MetadataUrl, T | RolledBackError] = {}
        for url in self._ordered():
            answer: T | RolledBackError
            try:
                answer = fetch(url)
            except RolledBackError as error:
                answer = error
            except (UpstreamError, FormatError, UntrustedError) as error:
                self._failed(url, error)
                failures[url] = error
                continue
            if isinstance(answer, RolledBackError) or is_behind(answer):
                self._found_behind(url)
                late[url] = answer
                continue
            self._health.succeeded(url.service, str(url))
            self._answered = url
            return [answer]
        if late and self.first not in late:
            failure = failures[self.first]
            if isinstance(failure, UntrustedError):
                raise failure
            raise BehindError(
                f"nothing newer than the local metadata at {', '.join(map(str, late))}; "
                f"{failure.message}",
                hint=failure.hint,
            )
        if not late:
            return []
        oldest = late[self.first]
        if isinstance(oldest, RolledBackError):
            raise oldest
        return [oldest]

    def _ordered(self) -> list[MetadataUrl]:
        """Return the URLs to try in order: the one that answered last, others, those that fail."""
        by_failures = sorted(
            self.urls, key=lambda url: self._health.failed_lately(url.service, str(url))
        )
        return sorted(by_failures, key=lambda url: url != self._answered)

    def _failed(self, url: MetadataUrl, error: Failure) -> None:
        """Record a temporary `error` as a failure of the service; report any if more URLs exist."""
        # An incomplete copy does not concern other modules of its service, and is soon complete.
        if isinstance(error, UpstreamDownError) and not isinstance(error, IncompleteCopyError):
            self._health.failed(url.service, error.message, seconds=error.retry_after)
        if len(self.urls) > 1:
            self.report(error.message)

    def _found_behind(self, url: MetadataUrl) -> None:
        """Report a URL that is behind, and count it as failed."""
        if len(self.urls) > 1:
            reason = f"{url}: has nothing newer than the local metadata"
            self._health.failed(str(url), reason)
            self.report(reason)

    def report(self, text: str) -> None:
        """Report `text`, once in a run."""
        if text not in self._reported:
            self._reported.add(text)
            self._on_message(text)


def _explain(url: MetadataUrl, failure: Failure) -> Failure:
    """Return the failure; for an unknown module with a hint, after asking for those that exist."""
    _, name = server_and_module(url.url, "")
    if not isinstance(failure, NotServedError) or not name:
        return failure
    from huai_client.metadata.served import suggest_module

    return NotServedError(failure.message, hint=suggest_module(url, name))
