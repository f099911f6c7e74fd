"""Packets of git's protocol out of a stream, up to the flush packet that ends a section.

Pure: bytes come from a callable.  Rule: what is no packet is a `FormatError`; a stream that
stops inside or before one is an `UpstreamError`.
"""

from collections.abc import Callable, Iterator

from huai_client.metadata.http import UpstreamError
from huai_schema.errors import FormatError
from huai_schema.git.pktline import FLUSH, HEADER_BYTES, packet_length

_READ_BYTES = 1 << 18

Read = Callable[[int], bytes]
"""At most so many bytes; none at the end."""


class Packets:
    """Takes a stream apart."""

    def __init__(self, read: Read, place: str) -> None:
        """`read` is called until it has given what is needed; `place` is for errors."""
        self._read = read
        self._place = place
        self._buffer = bytearray()

    def section(self) -> Iterator[bytes]:
        """The payloads up to the next flush packet."""
        while (payload := self.next()) is not None:
            yield payload

    def next(self) -> bytes | None:
        """The payload of the next packet; None for a flush packet."""
        header = bytes(self._take(HEADER_BYTES))
        length = packet_length(header, self._place)
        if length == FLUSH:
            return None
        if length < HEADER_BYTES:
            raise FormatError(f"the special packet {header!r} was not expected here", self._place)
        return bytes(self._take(length - HEADER_BYTES))

    def _take(self, count: int) -> bytearray:
        while len(self._buffer) < count:
            chunk = self._read(_READ_BYTES)
            if not chunk:
                raise UpstreamError(f"{self._place}: the reply ended early", hint="run again")
            self._buffer += chunk
        taken = self._buffer[:count]
        del self._buffer[:count]
        return taken
