"""What huai-client asks for: one commit without its history, told which commits it has.

Pure.  Of gitprotocol-pack(5), protocol version 0, only the one form that it sends (and any git may
send).  Rule: whatever is not exactly of that form is left to git, which knows all others.
"""

import re
from typing import NamedTuple

from huai_schema.git import pktline
from huai_schema.git.pktline import FLUSH, FLUSH_PACKET, packet

_WANT = re.compile(rb"want ([0-9a-f]{40}) ([!-~ ]*)\n?")
_SHALLOW = re.compile(rb"shallow ([0-9a-f]{40})\n?")
_HAVE = re.compile(rb"have ([0-9a-f]{40})\n?")
_DEEPEN = re.compile(rb"deepen 1\n?")
_DONE = re.compile(rb"done\n?")
_NEEDED = {b"side-band-64k", b"thin-pack"}
_KNOWN = {*_NEEDED, b"ofs-delta", b"no-progress", b"shallow"}
_AGENT = b"agent="
_HAVES = 16
"""A client has one, or two where a run was interrupted."""


class PlainFetch(NamedTuple):
    """One request; all ids are hex."""

    want: str
    haves: tuple[str, ...]
    """Of each of these everything is there but its history."""


def plain_fetch(body: bytes) -> PlainFetch | None:
    """The request in `body`, whose framing is right; None if it is of another form."""
    packets = list(pktline.split(body))
    lines = [each for each in packets if isinstance(each, bytes)]
    if packets.count(FLUSH) != 1 or len(lines) != len(packets) - 1 or len(packets) < 3:
        return None
    at = packets.index(FLUSH)
    first, last, deepen = lines[0], lines[-1], lines[at - 1]
    want = _WANT.fullmatch(first)
    if not want or at < 2 or not _DEEPEN.fullmatch(deepen) or not _DONE.fullmatch(last):
        return None
    shallow, haves = _ids(_SHALLOW, lines[1 : at - 1]), _ids(_HAVE, lines[at:-1])
    if shallow is None or haves is None or len(haves) > _HAVES or not set(shallow) <= set(haves):
        return None
    words = {word for word in want[2].split(b" ") if word and not word.startswith(_AGENT)}
    if not _NEEDED <= words <= _KNOWN:
        return None
    return PlainFetch(want[1].decode(), haves)


def opening(want: str, common: str | None) -> bytes:
    """What stands before the pack in the answer; `common` is the commit that it is based on."""
    boundary = packet(b"shallow " + want.encode()) + FLUSH_PACKET
    return boundary + packet(f"ACK {common}\n".encode() if common else b"NAK\n")


def _ids(line: re.Pattern[bytes], lines: list[bytes]) -> tuple[str, ...] | None:
    """The ids in lines of this form; None if one is of another."""
    found = [line.fullmatch(each) for each in lines]
    ids = tuple(each[1].decode() for each in found if each)
    return ids if len(ids) == len(lines) else None
