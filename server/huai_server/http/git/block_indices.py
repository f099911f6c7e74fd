"""Hands out block indices (FORMAT.md): files that never change under their names."""

import os
import re
from pathlib import Path

from huai_server.http.asgi.errors import HttpError
from huai_server.http.asgi.responder import FOREVER, Responder, Send
from huai_server.store.block_indices import block_index_path

_OPERATION = re.compile(r"blocks/([0-9a-f]{2})/(\1[0-9a-f]{62})")
_TYPE = b"application/octet-stream"


def asked_index(operation: str) -> bytes | None:
    """The digest whose index an address below the repository's is; None: it is another one."""
    found = _OPERATION.fullmatch(operation)
    return bytes.fromhex(found[2]) if found else None


async def send_index(repository: Path, digest: bytes, send: Send) -> None:
    """Answer with the index of the file with this digest."""
    try:
        handle = os.open(block_index_path(repository, digest), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        raise HttpError(404, "there is no block index of this digest") from None
    try:
        await Responder(send, _TYPE, b"", FOREVER).file(handle)
    finally:
        os.close(handle)
