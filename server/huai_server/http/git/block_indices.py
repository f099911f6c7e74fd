"""Block indices (FORMAT.md): files that never change under their names."""

import os
import re
from pathlib import Path

from huai_server.http.asgi.errors import HttpError
from huai_server.http.asgi.responder import FOREVER, Responder, Send
from huai_server.store.block_indices import block_index_path

_OPERATION = re.compile(r"blocks/([0-9a-f]{2})/(\1[0-9a-f]{62})")
_TYPE = b"application/octet-stream"


def parse_index(operation: str) -> bytes | None:
    """Return the digest in the address of a block index; None for another address."""
    match = _OPERATION.fullmatch(operation)
    return bytes.fromhex(match[2]) if match else None


async def send_index(repository: Path, digest: bytes, send: Send) -> None:
    """Send the index of the file with this digest."""
    try:
        handle = os.open(block_index_path(repository, digest), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        raise HttpError(404, "this digest has no block index") from None
    try:
        await Responder(send, _TYPE, b"", FOREVER).file(handle)
    finally:
        os.close(handle)
