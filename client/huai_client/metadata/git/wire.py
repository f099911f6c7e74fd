"""Requests for single objects in git's protocol, version 2 (gitprotocol-v2(5)), and the replies.

A reply is a pack, in packets on a side band.
"""

from collections.abc import Callable, Iterable

from huai_client.metadata.curl.errors import printable
from huai_client.metadata.git.limits import TALK_BYTES
from huai_client.metadata.http import NotServedError
from huai_schema.errors import FormatError

ADDRESS = "git-upload-pack"
REQUEST_TYPE = "application/x-git-upload-pack-request"
VERSION = {"Git-Protocol": "version=2"}
"""The header of a request."""
REPLY_TYPE = "application/x-git-upload-pack-result"
_FLUSH, _DELIMITER = b"0000", b"0001"
_LENGTH = 4
_SMALL = 64
"""The size of a packet that is not worth its length."""
_PACK, _PROGRESS = 1, 2
"""The side bands of a reply; the third is that of errors."""


def request_objects(oids: Iterable[bytes]) -> bytes:
    """Return the request for exactly these objects, given by their ids."""
    return _request(oids, b"filter tree:0")


def request_top(commit: bytes) -> bytes:
    """Return the request for a commit, its tree, and the items of that, without their content."""
    return _request([commit], b"filter tree:2", b"deepen 1")


def _request(oids: Iterable[bytes], *options: bytes) -> bytes:
    wants = (b"want %b" % oid.hex().encode() for oid in oids)
    arguments = (b"no-progress", b"ofs-delta", *options, *wants, b"done")
    return b"".join((_packet(b"command=fetch"), _DELIMITER, *map(_packet, arguments), _FLUSH))


def _packet(line: bytes) -> bytes:
    return b"%04x%b\n" % (len(line) + _LENGTH + 1, line)


def read_pack(read: Callable[[int], bytes], write: Callable[[bytes], object], place: str) -> None:
    """Read a reply, and pass the pack in it to `write`, in pieces.

    Raises `FormatError` for a malformed or cut reply, and `NotServedError` if the upstream refuses
    the request, as git does by an empty reply if it allows no filter or is older than the protocol.
    """
    in_pack, talk = False, 0
    while (packet := _read_packet(read, place)) != _FLUSH:
        if not packet:
            raise _early_end(place) if talk else NotServedError(f"{place}: an empty reply")
        if not in_pack or len(packet) < _SMALL or packet[0] != _PACK:
            talk += _LENGTH + len(packet)
        if talk > TALK_BYTES:
            raise FormatError(f"more than {TALK_BYTES} bytes besides the pack", place)
        if packet.startswith(b"ERR "):
            raise NotServedError(f"{place}: {_text(packet[4:])}")
        if not in_pack:
            in_pack = packet == b"packfile\n"  # other sections come before
        elif packet[0] == _PACK:
            write(packet[1:])
        elif packet[0] != _PROGRESS:
            raise NotServedError(f"{place}: {_text(packet[1:])}")
    if not in_pack:
        raise FormatError("a reply without a pack", place)


def _read_packet(read: Callable[[int], bytes], place: str) -> bytes:
    """Return the content of the next packet; the packet itself if it is one without content.

    Returns nothing at the end of the reply.
    """
    if not (begin := read(_LENGTH)):
        return b""
    header = begin + _read_exactly(read, _LENGTH - len(begin), place)
    try:
        length = int(header, 16)
    except ValueError:
        raise FormatError("a malformed packet", place) from None
    if length <= _LENGTH:
        return header
    return _read_exactly(read, length - _LENGTH, place)


def _read_exactly(read: Callable[[int], bytes], size: int, place: str) -> bytes:
    data = bytearray()
    while len(data) < size:
        if not (piece := read(size - len(data))):
            raise _early_end(place)
        data += piece
    return bytes(data)


def _early_end(place: str) -> FormatError:
    return FormatError("the reply ends early", place)


def _text(data: bytes) -> str:
    return printable(data.decode("utf-8", "replace").strip())[:200]
