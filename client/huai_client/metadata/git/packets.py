"""The framing of git's protocol: data packets, and the flush packet that ends a section.

Pure: bytes come from a callable (gitprotocol-common(5)).  Rule: what is no packet is a
`FormatError`; a stream that stops inside or before one is an `UpstreamError`.
"""

import re
from collections.abc import Callable, Iterator

from huai_client.metadata.http import UpstreamError
from huai_schema.errors import FormatError

FLUSH = b"0000"
_HEADER = 4
_LENGTH_MAX = 65_520
_HEX = re.compile(rb"[0-9a-fA-F]{4}")
_READ_BYTES = 1 << 18

Read = Callable[[int], bytes]
"""At most so many bytes; none at the end."""


def packet(payload: bytes) -> bytes:
    """One data packet."""
    return b"%04x" % (len(payload) + _HEADER) + payload


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
        header = bytes(self._take(_HEADER))
        if header == FLUSH:
            return None
        length = int(header, 16) if _HEX.fullmatch(header) else 0
        if not _HEADER <= length <= _LENGTH_MAX:
            raise FormatError(f"{header!r} does not begin a packet", self._place)
        return bytes(self._take(length - _HEADER))

    def _take(self, count: int) -> bytearray:
        while len(self._buffer) < count:
            chunk = self._read(_READ_BYTES)
            if not chunk:
                raise UpstreamError(f"{self._place}: the reply ended early", hint="run again")
            self._buffer += chunk
        taken = self._buffer[:count]
        del self._buffer[:count]
        return taken
