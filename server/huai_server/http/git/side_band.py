"""Sends a pack that is ready, in side-bands (gitprotocol-pack(5)), a block at a time.

Rule: the length of the answer is told first, so a pack that turns out shorter drops the connection.
"""

import asyncio
import logging
import os
from collections.abc import Iterator

from huai_schema.git.pktline import FLUSH_PACKET, HEADER_BYTES, packet
from huai_server.http.asgi.errors import ClientGoneError
from huai_server.http.asgi.responder import Responder
from huai_server.http.git.ready_packs import ReadyPack

_log = logging.getLogger(__name__)

_BAND = b"\x01"
"""Of data."""
_DATA_BYTES = 65_515
"""Of the pack in one packet: as git has it, the most that fits."""
_BLOCK_BYTES = 4 * _DATA_BYTES


async def send_ready(pack: ReadyPack, opening: bytes, out: Responder) -> None:
    """Answer with `opening` and the pack."""
    packets = -(-pack.size // _DATA_BYTES)
    beside = packets * (HEADER_BYTES + len(_BAND)) + len(FLUSH_PACKET)
    await out.begin(len(opening) + pack.size + beside)
    await out.piece(opening)
    for at in range(0, pack.size, _BLOCK_BYTES):
        await out.piece(await asyncio.to_thread(_block, pack, at))
    await out.end(FLUSH_PACKET)


def _block(pack: ReadyPack, at: int) -> bytes:
    """What follows in the pack, as packets."""
    size = min(_BLOCK_BYTES, pack.size - at)
    data = os.pread(pack.handle, size, at)
    if len(data) != size:
        _log.error("a pack has become shorter while it was sent")
        raise ClientGoneError("a pack ended early")
    return b"".join(_packets(data))


def _packets(data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), _DATA_BYTES):
        yield packet(_BAND + data[at : at + _DATA_BYTES])
