"""The framing of git's protocol: enough of it to refuse garbage and to recognise equal requests.

Pure.  See gitprotocol-common, gitprotocol-pack and gitprotocol-v2.  What a request *means*
stays git's business: this module only splits it, and leaves out of its fingerprint the one
thing that cannot change the answer: the client's name, where git itself writes it.

Rule: equal fingerprints mean equal answers, because an answer is kept under its fingerprint
and given to others.  Git reads a packet as a C string and takes any white space for the end
of a word, so a name is left out only if it consists of visible characters, and a packet with
a NUL is refused.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from huai_server.http.asgi.errors import RefusedError

_HEADER = 4
_LENGTH_MAX = 65_520
_FIRST_DATA_LENGTH = 4
_HEX = re.compile(rb"[0-9a-fA-F]{4}")
_AGENT = re.compile(rb"agent=[!-~]*\n?")
"""A packet of protocol v2."""
_WANT_WITH_AGENT = re.compile(rb"(want [0-9a-f]{40,64}(?: [!-~]+)*) agent=[!-~]*\n?")
"""The first packet before protocol v2; the name is its last word."""
_COMMAND = b"command="


class Request(NamedTuple):
    """What one complete request body says, as far as serving it depends on that."""

    command: bytes
    """`ls-refs` or `fetch` in protocol v2; empty before v2, where all is fetch."""
    digest: bytes
    """Equal for requests that deserve the equal answer."""


def parse(body: bytes, version: int) -> Request:
    """Check the framing of all of `body`, a request in `version` of the protocol.

    Broken framing is refused with status 400, and so is a NUL: git would read only what is
    before it, and no client sends one.
    """
    digest = hashlib.sha256()
    command = b""
    in_capabilities = True
    for packet in packets(body):
        if isinstance(packet, int):
            in_capabilities = False
            digest.update(b"!%d" % packet)
            continue
        kept: bytes | None = packet
        if in_capabilities:
            kept = _without_agent(packet, version)
            if version == 2 and packet.startswith(_COMMAND):
                command = packet.removeprefix(_COMMAND).removesuffix(b"\n")
            in_capabilities = version == 2  # before that they stand in the first packet only
        if kept is not None:
            digest.update(b"%d:" % len(kept))
            digest.update(kept)
    return Request(command, digest.digest())


def _without_agent(packet: bytes, version: int) -> bytes | None:
    """What of a packet with capabilities can matter; None if nothing does."""
    if version == 2:
        return None if _AGENT.fullmatch(packet) else packet
    want = _WANT_WITH_AGENT.fullmatch(packet)
    return want[1] if want else packet


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
        packet = body[at + _HEADER : at + length]
        if b"\0" in packet:
            raise RefusedError(400, f"a packet at byte {at} of the request holds a NUL")
        yield packet
        at += length
