"""Fetches the block indices of large files from the upstream of the metadata (FORMAT.md).

The digest of the file proves its index, so the source need not be trusted.  Each metadata URL is
tried, as a copy of the repository that git made has no indices.  A missing index, or one of another
file, only costs a transfer.
"""

import os
from collections.abc import Callable

from huai_client.metadata.content_link import content_url
from huai_client.metadata.failover import Failover
from huai_client.metadata.http import MetadataUrl, NotServedError, UpstreamError, is_http
from huai_client.metadata.static_fetch import Files
from huai_client.run.options import Deadline
from huai_native._native import BlockIndex
from huai_schema.errors import FormatError


class BlockIndexFetch:
    """Fetches block indices during one run."""

    def __init__(
        self,
        metadata: Failover,
        deadline: Deadline,
        *,
        timeout: float,
        on_message: Callable[[str], None],
    ) -> None:
        """`timeout` (s): see `send`.  `on_message` receives the reason why an index is missing."""
        self._metadata = metadata
        self._files = Files(timeout=timeout, deadline=deadline)
        self._on_message = on_message
        self.content_url = ""
        """The URL of the module's content, as the last server that sent an index states it."""

    def find(self, size: int, digest: bytes) -> BlockIndex | None:
        """Fetch the index of the file of `size` bytes with this digest; None if none is usable.

        The reason is reported, unless no URL has one; `content_url` is set by a server that has it.
        Raises `TimeUpError` at the deadline.
        """
        try:
            return self._metadata.first_found(lambda url: self._fetch(url, size, digest))
        except (UpstreamError, FormatError) as error:
            self._on_message(f"a block index was not usable: {error.message}")
            return None

    def _fetch(self, url: MetadataUrl, size: int, digest: bytes) -> BlockIndex | None:
        """Fetch the index of the file of `size` bytes with this digest; None if not served.

        Raises `FormatError` if it does not fit the file.
        """
        name = digest.hex()
        path = f"blocks/{name[:2]}/{name}"
        limit = BlockIndex.length(size)
        if is_http(url.url):
            data = self._fetch_http(url, path, limit)
        else:
            data = _read(os.path.join(url.url.removeprefix("file://"), path), limit)
        return None if data is None else BlockIndex.decode(data, size, digest)

    def _fetch_http(self, url: MetadataUrl, path: str, limit: int) -> bytes | None:
        """Fetch at most `limit` + 1 bytes, and set `content_url`; None if not served."""
        try:
            with self._files.get(url, path) as response:
                self.content_url = content_url(response.url, response.link)
                return response.read_all(limit + 1)
        except NotServedError:
            return None


def _read(path: str, limit: int) -> bytes | None:
    """Return at most `limit` + 1 bytes of a local file; None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(limit + 1)
    except OSError:
        return None  # git's other transports serve no files
