"""A gzip stream, undone in slices, so that a bomb never swells beyond one of them.

Pure.  The caller counts what comes out and stops asking.
"""

import zlib
from collections.abc import Iterator

from huai_server.http.asgi.errors import HttpError

_SLICE = 64 << 10
_GZIP_WBITS = 16 + zlib.MAX_WBITS


class Inflater:
    """One stream (RFC 1952), of one member, as git sends it."""

    def __init__(self) -> None:
        """Before the first byte."""
        self._stream = zlib.decompressobj(_GZIP_WBITS)

    def slices(self, data: bytes) -> Iterator[bytes]:
        """What the next piece of the stream gives; damage is refused with status 400."""
        while True:
            if self._stream.eof and data:
                raise HttpError(400, "there is data after the gzip stream of the request")
            try:
                piece = self._stream.decompress(data, _SLICE)
            except zlib.error:
                raise HttpError(400, "the gzip stream of the request is damaged") from None
            data = self._stream.unconsumed_tail or self._stream.unused_data
            if piece:
                yield piece
            elif not data:
                return

    def finish(self) -> None:
        """No more data comes: refused unless the stream is at its end."""
        if not self._stream.eof:
            raise HttpError(400, "the gzip stream of the request ends too early")
