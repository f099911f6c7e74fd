"""Finding the pack in what comes back: shallow commits, acknowledgements, then side-bands.

Pure: bytes come from a callable (gitprotocol-pack(5)).  Rule: text that the upstream chose
reaches the user with nothing but printable characters in it.
"""

import re
from collections.abc import Iterator

from huai_client.metadata.git.packets import Packets, Read
from huai_client.metadata.http import UpstreamError, printable
from huai_schema.errors import FormatError

_BOUNDARY = re.compile(rb"(?:un)?shallow [0-9a-f]{40}\n?")
_ANSWER = re.compile(rb"(?:NAK|ACK [0-9a-f]{40})\n?")
_ERROR = b"ERR "
_DATA, _PROGRESS, _FATAL = 1, 2, 3


def pack_of(read: Read, place: str) -> Iterator[bytes]:
    """The bytes of the pack in a reply to `encode_request`; `place` is for errors."""
    packets = Packets(read, place)
    for payload in packets.section():
        if not _BOUNDARY.fullmatch(payload):
            raise _unexpected(payload, place)
    answer = packets.next()
    while answer is not None and _ANSWER.fullmatch(answer):
        answer = packets.next()
    while answer is not None:
        band = answer[0] if answer else 0
        if band == _DATA:
            yield answer[1:]
        elif band == _FATAL:
            raise _refusal(answer[1:], place)
        elif band != _PROGRESS:
            raise _unexpected(answer, place)
        answer = packets.next()


def _unexpected(payload: bytes, place: str) -> FormatError | UpstreamError:
    if payload.startswith(_ERROR):
        return _refusal(payload.removeprefix(_ERROR), place)
    return FormatError(f"{payload[:40]!r} was not expected here", place)


def _refusal(text: bytes, place: str) -> UpstreamError:
    said = printable(text.decode(errors="replace"))
    return UpstreamError(f"{place}: the upstream says: {said}", hint="run again later")
