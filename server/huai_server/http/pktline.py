"""The framing of git's protocol: enough of it to refuse garbage and to recognise equal requests.

Pure.  See gitprotocol-common and gitprotocol-v2.  What a request *means* stays git's
business: this module only splits it, and leaves out of its fingerprint what cannot
change the answer (the client's name and its session id).
"""

import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from huai_server.http.refusal import RefusedError

_HEADER = 4
_LENGTH_MAX = 65_520
_FIRST_DATA_LENGTH = 4
_HEX = re.compile(rb"[0-9a-fA-F]{4}")
_NAMES_THE_CLIENT = (b"agent=", b"session-id=")
_NAMES_THE_CLIENT_INLINE = re.compile(rb" (?:agent|session-id)=[^ \n]*")
_COMMAND = b"command="


class Request(NamedTuple):
    """What one complete request body says, as far as serving it depends on that."""

    command: bytes
    """`ls-refs` or `fetch` in protocol v2; empty before v2, where all is fetch."""
    digest: bytes
    """Equal for requests that deserve the equal answer."""


def parse(body: bytes) -> Request:
    """Check the framing of all of `body`; broken framing is refused with status 400."""
    digest = hashlib.sha256()
    command = b""
    in_capabilities = True
    for packet in packets(body):
        if isinstance(packet, int):
            in_capabilities = False
            digest.update(b"!%d" % packet)
            continue
        kept = packet
        if in_capabilities:
            if packet.startswith(_NAMES_THE_CLIENT):
                continue
            if packet.startswith(_COMMAND):
                command = packet.removeprefix(_COMMAND).rstrip(b"\n")
            kept = _NAMES_THE_CLIENT_INLINE.sub(b"", packet)
        digest.update(b"%d:" % len(kept))
        digest.update(kept)
    return Request(command, digest.digest())


def packets(body: bytes) -> Iterator[bytes | int]:
    """The data packets of `body`, and the special ones (flush 0, delimiter 1, end 2) as numbers."""
    if not body:
        raise RefusedError(400, "the request body is empty")
    at = 0
    while at < len(body):
        header = body[at : at + _HEADER]
        if not _HEX.fullmatch(header):
            raise RefusedError(400, f"bad packet length at byte {at} of the request")
        length = int(header, 16)
        if length < _FIRST_DATA_LENGTH:
            if length == _FIRST_DATA_LENGTH - 1:
                raise RefusedError(400, f"bad packet length at byte {at} of the request")
            yield length
            at += _HEADER
            continue
        if length > _LENGTH_MAX or at + length > len(body):
            raise RefusedError(400, f"a packet at byte {at} is longer than the request")
        yield body[at + _HEADER : at + length]
        at += length
