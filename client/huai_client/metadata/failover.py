"""Several metadata URLs of one module: the first decides, the others stand in for it.

Rules:

- The URLs are asked in order, those that failed lately last, until one answers.  Whatever keeps
  one from answering, a module that it does not have and a forged commit included, leads to the
  next.
- An answer that is older than what is here is passed over as long as another URL has a newer one.
  If none has, the first URL's is the answer, and its caller refuses it; if the first has none,
  the others have nothing to say (`BehindError`), and what is applied stays.
- If none answered and one of the failures may pass, all are asked again, after a pause that
  doubles, with jitter.  A Retry-After makes it longer; if it is too long to wait for, that
  is the end of this run.
- If none answers, the failure is the first URL's.
- What a copy of the repository may lack, such as a block index, is asked of each URL in turn.
"""

import re
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from huai_client.metadata.http import (
    IncompleteCopyError,
    MetadataUrl,
    NotServedError,
    UpstreamDownError,
    UpstreamError,
)
from huai_client.metadata.newest import Newest
from huai_client.run.deadline import NEVER, Deadline
from huai_client.run.retry import Backoff, retry
from huai_client.state.upstream_health import UpstreamHealth
from huai_schema.errors import ExitCode, FormatError, HuaiError

_BACKOFF = Backoff(retries=2, first=0.5, longest=60.0)
_WORTH_SAYING = 2.0
"""Seconds."""

_NAME = re.compile(r"/git/([^/]+)\.git$")

T = TypeVar("T")


class UntrustedError(HuaiError):
    """A commit that nobody signed who is trusted."""

    exit_code = ExitCode.UNSIGNED


Failure = UpstreamError | FormatError | UntrustedError


class BehindError(UpstreamError):
    """Those that answer have nothing newer than what is here, and the first does not answer."""


class _NobodyError(Exception):
    """None has answered; it may help to ask again."""

    def __init__(self, retry_after: float) -> None:
        super().__init__()
        self.retry_after = retry_after


class Failover:
    """The URLs of one module in one run; one that has answered is asked first from then on."""

    def __init__(
        self,
        urls: Sequence[MetadataUrl],
        health: UpstreamHealth,
        *,
        on_message: Callable[[str], None] = lambda _: None,
        deadline: Deadline = NEVER,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`urls`, at least one, in the order of preference; `pause` waits for so many seconds.

        `on_message` is called with what is waited for and what was wrong with one of several,
        each text once.
        """
        self.urls = tuple(dict.fromkeys(urls))
        self._health = health
        self._on_message = on_message
        self._said: set[str] = set()
        self._deadline = deadline
        self._pause = pause
        self._answered: MetadataUrl | None = None
        self._lacking: set[MetadataUrl] = set()
        self.heard: Newest | None = None
        """What nobody has taken yet of what was heard."""

    @property
    def first(self) -> MetadataUrl:
        """The one that decides."""
        return self.urls[0]

    def hear(self, newest: Newest) -> None:
        """Remember what the URL that answered last said of its newest commit."""
        self.heard = newest

    def take_heard(self, url: MetadataUrl) -> Newest | None:
        """What was heard from `url`, once: whoever fetches again has to ask again."""
        if url != self._answered:
            return None
        heard, self.heard = self.heard, None
        return heard

    def first_answer(
        self,
        fetch: Callable[[MetadataUrl], T],
        is_behind: Callable[[T], bool] = lambda _: False,
    ) -> T:
        """The first answer of any URL that is not behind, else what the first URL says.

        Raises `BehindError`, or the failure of the first URL.
        """
        failures: dict[MetadataUrl, Failure] = {}

        def once() -> T:
            answers = self._round(fetch, is_behind, failures)
            if not answers:
                raise _NobodyError(self._worth_a_retry(failures))
            return answers[0]

        return self._again(once, failures)

    def first_found(self, fetch: Callable[[MetadataUrl], T | None]) -> T | None:
        """What the first URL has that has it at all; None: nobody has who answers.

        Whoever lacks it is asked last for the next such thing.  Raises the failure of the first URL
        if none answers.
        """
        failures: dict[MetadataUrl, Failure] = {}

        def once() -> T | None:
            answered = False
            for url in sorted(self._ordered(), key=self._lacking.__contains__):
                try:
                    found = fetch(url)
                except (UpstreamError, FormatError) as error:
                    self._failed(url, error)
                    failures[url] = error
                    continue
                if found is not None:
                    return found
                answered = True
                self._lacking.add(url)
            if not answered:
                raise _NobodyError(self._worth_a_retry(failures))
            return None

        return self._again(once, failures)

    def _again(self, once: Callable[[], T], failures: dict[MetadataUrl, Failure]) -> T:
        """The result of `once`, repeated as long as nobody answers and that may pass."""

        def pause(seconds: float) -> None:
            if seconds >= _WORTH_SAYING:
                self._say(f"{failures[self.first].message}; asked again in {seconds:.0f} s")
            self._pause(seconds)

        try:
            return retry(once, _NobodyError, _BACKOFF, pause)
        except _NobodyError:
            raise _explained(self.first, failures[self.first]) from None

    def _worth_a_retry(self, failures: dict[MetadataUrl, Failure]) -> float:
        """Seconds to wait at least before all are asked again; raises if that is no use."""
        passing = [each for each in failures.values() if isinstance(each, UpstreamDownError)]
        wait = min((each.retry_after for each in passing), default=_BACKOFF.longest + 1)
        if wait > _BACKOFF.longest or wait + _BACKOFF.first > self._deadline.left:
            raise _explained(self.first, failures[self.first])
        return wait

    def _round(
        self,
        fetch: Callable[[MetadataUrl], T],
        is_behind: Callable[[T], bool],
        failures: dict[MetadataUrl, Failure],
    ) -> list[T]:
        """Ask each URL once, until one has an answer that is not behind; empty: all fail."""
        late: dict[MetadataUrl, T] = {}
        for url in self._ordered():
            try:
                answer = fetch(url)
            except (UpstreamError, FormatError, UntrustedError) as error:
                self._failed(url, error)
                failures[url] = error
                continue
            if is_behind(answer):
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
                f"nothing newer than what is here at {', '.join(map(str, late))}; "
                f"{failure.message}",
                hint=failure.hint,
            )
        return [late[self.first]] if late else []

    def _ordered(self) -> list[MetadataUrl]:
        found = sorted(self.urls, key=lambda url: self._health.failed_lately(url.service, str(url)))
        return sorted(found, key=lambda url: url != self._answered)

    def _failed(self, url: MetadataUrl, error: Failure) -> None:
        # An incomplete copy says nothing about other modules of its service, and passes in seconds.
        if isinstance(error, UpstreamDownError) and not isinstance(error, IncompleteCopyError):
            self._health.failed(url.service, error.message, seconds=error.retry_after)
        if len(self.urls) > 1:
            self._say(error.message)

    def _found_behind(self, url: MetadataUrl) -> None:
        if len(self.urls) > 1:
            reason = f"{url}: has nothing newer than what is here"
            self._health.failed(str(url), reason)
            self._say(reason)

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._on_message(text)


def _explained(url: MetadataUrl, failure: Failure) -> Failure:
    """The failure; for a module that is not there with what the upstream has instead."""
    found = _NAME.search(url.url)
    if not isinstance(failure, NotServedError) or found is None:
        return failure
    from huai_client.metadata.served import offered

    return NotServedError(failure.message, hint=offered(url, found[1]))
