"""Files below an upstream's address, asked for where redirections led the last time."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from huai_client.metadata.http import (
    Answer,
    MetadataUrl,
    NotServedError,
    Question,
    UpstreamError,
    ask,
)
from huai_client.run.deadline import Deadline


class Files:
    """Asks for one file after the other."""

    def __init__(self, *, timeout: float, deadline: Deadline) -> None:
        """`timeout` (s): as `ask` has it."""
        self._timeout = timeout
        self._deadline = deadline
        self._found: dict[MetadataUrl, MetadataUrl] = {}

    @contextmanager
    def get(self, url: MetadataUrl, place: str) -> Iterator[Answer]:
        """The file at `place` below `url`; `NotServedError` if there is none."""
        with ExitStack() as stack:
            yield self._answer(url, place, stack)

    def _answer(self, url: MetadataUrl, place: str, stack: ExitStack) -> Answer:
        found = self._found.pop(url, None)
        if found is not None:
            try:
                answer = self._ask(found, place, stack)
            except NotServedError:
                raise
            except UpstreamError:  # this file may be elsewhere
                pass
            else:
                self._found[url] = found
                return answer
        answer = self._ask(url, place, stack)
        found = url.redirected(answer.url.removesuffix(f"/{place}"))
        if found != url:
            self._found[url] = found
        return answer

    def _ask(self, url: MetadataUrl, place: str, stack: ExitStack) -> Answer:
        answering = ask(url, Question(place), timeout=self._timeout, deadline=self._deadline)
        return stack.enter_context(answering)
