"""The content URLs of one transfer, in the order in which they are worth trying.

Shared by all streams: what one learns about a URL spares the others the attempt.
"""

import threading
from collections.abc import Sequence

from huai_client.transfer.errors import UpstreamRefusedError
from huai_client.transfer.urls import ContentUrl


class Sources:
    """URLs that may still be asked, the last good one first."""

    def __init__(self, urls: Sequence[ContentUrl]) -> None:
        """`urls` in the order of preference; raises `UpstreamRefusedError` if there is none."""
        if not urls:
            raise UpstreamRefusedError(
                "no content URL is known", hint="give one on the server, or in the configuration"
            )
        self._urls = list(dict.fromkeys(urls))
        self._refusal: UpstreamRefusedError | None = None
        self._lock = threading.Lock()

    def usable(self) -> list[ContentUrl]:
        """What to try, in order; raises the last refusal if nothing is left."""
        with self._lock:
            if not self._urls and self._refusal:
                raise self._refusal
            return list(self._urls)

    def demote(self, url: ContentUrl) -> None:
        """`url` failed for now: try it after the others."""
        with self._lock:
            if url in self._urls:
                self._urls.remove(url)
                self._urls.append(url)

    def drop(self, url: ContentUrl, refusal: UpstreamRefusedError) -> None:
        """`url` refused for good."""
        with self._lock:
            self._refusal = refusal
            if url in self._urls:
                self._urls.remove(url)
