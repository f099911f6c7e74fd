"""The framing of git's protocol (gitprotocol-common(5)), for tests that speak it themselves."""

from collections.abc import Iterator

FLUSH_PACKET = b"0000"
_HEADER_BYTES = 4


def packet(payload: bytes) -> bytes:
    """Return one data packet."""
    return b"%04x" % (len(payload) + _HEADER_BYTES) + payload


def split(data: bytes) -> Iterator[bytes]:
    """Yield the payloads of the data packets in an answer."""
    start = 0
    while start < len(data):
        length = max(int(data[start : start + _HEADER_BYTES], 16), _HEADER_BYTES)
        yield data[start + _HEADER_BYTES : start + length]
        start += length
