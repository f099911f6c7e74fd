"""The framing of git's protocol: pkt-lines (gitprotocol-common(5)).

Pure.  It tells where a packet ends; what a packet means is the business of whoever reads it.
"""

import re
from collections.abc import Iterator

from huai_schema.errors import FormatError

FLUSH = 0
"""The special packet that ends a section; 1 parts a request in two."""
RESPONSE_END = 2
"""The last of the special packets; they hold nothing."""
FLUSH_PACKET = b"0000"
HEADER_BYTES = 4
_LENGTH_MAX = 65_520
_HEX = re.compile(rb"[0-9a-fA-F]{4}")


def packet(payload: bytes) -> bytes:
    """One data packet."""
    return b"%04x" % (len(payload) + HEADER_BYTES) + payload


def packet_length(header: bytes, place: str = "") -> int:
    """The length of the packet that `header` begins, header included; below 3 a special packet."""
    length = int(header, 16) if _HEX.fullmatch(header) else _LENGTH_MAX + 1
    if length > _LENGTH_MAX or RESPONSE_END < length < HEADER_BYTES:
        raise FormatError(f"{header!r} does not begin a packet", place)
    return length


def split(data: bytes) -> Iterator[bytes | int]:
    """The payloads of the packets in `data`, and the special packets as numbers.

    `FormatError` where `data` is no packet or ends inside one; its place is the byte.
    """
    at = 0
    while at < len(data):
        place = f"byte {at}"
        length = packet_length(data[at : at + HEADER_BYTES], place)
        if length <= RESPONSE_END:
            yield length
            at += HEADER_BYTES
            continue
        if at + length > len(data):
            raise FormatError("a packet that is cut short", place)
        yield data[at + HEADER_BYTES : at + length]
        at += length
