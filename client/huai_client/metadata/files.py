"""Files below an upstream's address, one after the other on a connection that stays."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from huai_client.metadata.http import (
    Answer,
    Asked,
    MetadataUrl,
    NotServedError,
    Question,
    UpstreamError,
    ask,
)
from huai_client.metadata.http_line import Line
from huai_client.run.deadline import Deadline


class _Open(NamedTuple):
    """A connection that stays."""

    url: MetadataUrl
    """Who was to be asked."""
    found: MetadataUrl
    """Where redirections led."""
    line: Line


class Files:
    """Asks for files; whoever lets go of it closes the connection."""

    def __init__(self, *, timeout: float, deadline: Deadline) -> None:
        """`timeout` (s): as `ask` has it."""
        self._timeout = timeout
        self._deadline = deadline
        self._open: _Open | None = None

    def close(self) -> None:
        """Let go of the connection that stays."""
        self._open = None

    def follow(self, url: MetadataUrl, line: Line | None) -> None:
        """Take over a connection on which `url` was asked something."""
        self._open = _Open(url, url, line) if line else None

    @contextmanager
    def get(self, url: MetadataUrl, place: str) -> Iterator[Answer]:
        """The file at `place` below `url`; `NotServedError` if there is none."""
        with ExitStack() as stack:
            answer = self._again(url, place, stack)
            if answer is None:
                question, timeout = Question(place, stay=True), self._timeout
                answering = ask(url, question, timeout=timeout, deadline=self._deadline)
                answer = stack.enter_context(answering)
            yield answer
            line = answer.release()
            if line is not None:
                found = url.redirected(answer.url.removesuffix(f"/{place}"))
                self._open = _Open(url, found, line)

    def _again(self, url: MetadataUrl, place: str, stack: ExitStack) -> Answer | None:
        """The answer on the connection that stayed; None if there is none, for whatever reason."""
        before, self._open = self._open, None
        if before is None or before.url != url:
            return None
        question, timeout = Question(place, stay=True), self._timeout
        try:
            asked = Asked(
                before.found, question, timeout=timeout, deadline=self._deadline, line=before.line
            )
            return stack.enter_context(asked.answer())
        except NotServedError:
            raise
        except UpstreamError:  # the other side may have closed it, or may redirect this one
            return None
