"""Checking a request to git, and a fingerprint by which equal ones are known.

Pure.  See gitprotocol-pack and gitprotocol-v2.  Git itself interprets the request.  The fingerprint
covers all of it except the client's name (`agent`), which cannot change the answer.

Rule: equal fingerprints mean equal answers, because an answer is kept under its fingerprint
and given to others.  Git reads a packet as a C string and takes any white space for the end
of a word, so a name is left out only if it consists of visible characters, and a packet with
a NUL is refused.
"""

import hashlib
import re
from typing import NamedTuple

from huai_schema.errors import FormatError
from huai_schema.git import pktline
from huai_server.http.asgi.errors import HttpError

_AGENT = re.compile(rb"agent=[!-~]*\n?")
"""A packet of protocol v2."""
_WANT_WITH_AGENT = re.compile(rb"(want [0-9a-f]{40,64}(?: [!-~]+)*) agent=[!-~]*\n?")
"""The first packet before protocol v2; the name is its last word."""
_COMMAND = b"command="


class GitRequest(NamedTuple):
    """One complete request body."""

    command: bytes
    """`ls-refs` or `fetch` in protocol v2; empty before v2, where all is fetch."""
    digest: bytes
    """The fingerprint: equal for requests with equal answers."""


def parse_request(body: bytes, version: int) -> GitRequest:
    """Check the framing of all of `body`, a request in `version` of the protocol.

    Refuses broken framing with status 400, and a NUL too: git would read only what is before it,
    and no client sends one.
    """
    if not body:
        raise HttpError(400, "the request body is empty")
    try:
        return _fingerprint(body, version)
    except FormatError as error:  # without its words, which hold some of the request's
        raise HttpError(400, f"no packet at {error.place} of the request") from None


def _fingerprint(body: bytes, version: int) -> GitRequest:
    digest = hashlib.sha256()
    command = b""
    in_capabilities = True
    for packet in pktline.split(body):
        if isinstance(packet, int):
            in_capabilities = False
            digest.update(b"!%d" % packet)
            continue
        if b"\0" in packet:
            raise HttpError(400, "a packet of the request holds a NUL")
        kept: bytes | None = packet
        if in_capabilities:
            kept = _without_agent(packet, version)
            if version == 2 and packet.startswith(_COMMAND):
                command = packet.removeprefix(_COMMAND).removesuffix(b"\n")
            in_capabilities = version == 2  # before that they stand in the first packet only
        if kept is not None:
            digest.update(b"%d:" % len(kept))
            digest.update(kept)
    return GitRequest(command, digest.digest())


def _without_agent(packet: bytes, version: int) -> bytes | None:
    """A packet with capabilities without the client's name; None if nothing is left."""
    if version == 2:
        return None if _AGENT.fullmatch(packet) else packet
    want = _WANT_WITH_AGENT.fullmatch(packet)
    return want[1] if want else packet
