"""Files below an upstream's address; the target of a redirect is remembered for the next file."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from huai_client.metadata.http import (
    MetadataUrl,
    NotServedError,
    Request,
    Response,
    UpstreamError,
    send,
)
from huai_client.run.deadline import Deadline


class Files:
    """Requests one file after the other."""

    def __init__(self, *, timeout: float, deadline: Deadline) -> None:
        """`timeout` (s): see `send`."""
        self._timeout = timeout
        self._deadline = deadline
        self._targets: dict[MetadataUrl, MetadataUrl] = {}

    @contextmanager
    def get(self, url: MetadataUrl, path: str) -> Iterator[Response]:
        """Open the file at `path` below `url`; `NotServedError` if it is missing."""
        with ExitStack() as stack:
            yield self._response(url, path, stack)

    def _response(self, url: MetadataUrl, path: str, stack: ExitStack) -> Response:
        target = self._targets.pop(url, None)
        if target is not None:
            try:
                response = self._send(target, path, stack)
            except NotServedError:
                raise
            except UpstreamError:  # another file may have another target
                pass
            else:
                self._targets[url] = target
                return response
        response = self._send(url, path, stack)
        target = url.redirected(response.url.removesuffix(f"/{path}"))
        if target != url:
            self._targets[url] = target
        return response

    def _send(self, url: MetadataUrl, path: str, stack: ExitStack) -> Response:
        exchange = send(url, Request(path), timeout=self._timeout, deadline=self._deadline)
        return stack.enter_context(exchange)
