"""Static files and block indices (FORMAT.md), served from the repository, where commits put them.

Rule: a requested place is matched against the few possible forms before it is opened.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huai_schema.codec.static_files import FOLDER, HEAD
from huai_schema.codec.web_folder import CONTENT_RELATION
from huai_server.http.asgi.conditions import NOT_MODIFIED, names_weakly
from huai_server.http.asgi.errors import HttpError
from huai_server.http.asgi.responder import FOREVER, Headers, Responder, Send

_DIGEST = "[0-9a-f]{64}"
_PLACE = re.compile(
    rf"{FOLDER}/(?:{HEAD}|packs/{_DIGEST}\.pack|lists/{_DIGEST})|blocks/([0-9a-f]{{2}})/\1[0-9a-f]{{62}}"
)
_HEAD = f"{FOLDER}/{HEAD}"
BLOCKS = "blocks/"
"""The folder of the block indices."""
_TYPE = b"application/octet-stream"
_MISSING = "this static file does not exist"


def is_static(operation: str) -> bool:
    """True if an address below the repository's is that of such a file."""
    return _PLACE.fullmatch(operation) is not None


def content_link(name: str, place: str) -> tuple[bytes, bytes]:
    """Return the header that names the content of module `name`, for the file at `place`."""
    up = "../" * (2 + place.count("/"))
    return b"link", f'<{up}content/{name}/>; rel="{CONTENT_RELATION}"'.encode()


async def send_static(
    repository: Path, place: str, scope: Mapping[str, Any], send: Send, links: Headers
) -> None:
    """Send the file at `place`, which passed `is_static`, with the headers `links`, or 304.

    Raises status 404 if it is missing.
    """
    try:
        handle = os.open(f"{repository}/{place}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        # A commit makes the first head; one of an older version did not.
        hint = "the operator can run: huai-server publish NAME" if place == _HEAD else ""
        message = "this digest has no block index" if place.startswith(BLOCKS) else _MISSING
        raise HttpError(404, message, hint=hint) from None
    try:
        status = os.fstat(handle)
        if place != _HEAD:
            out = Responder(send, _TYPE, b"", [*FOREVER, *links])
            if scope["method"] == "HEAD":
                await out.begin(status.st_size)
                await out.end()
            else:
                await out.file(handle)
            return
        etag = f'"{status.st_mtime_ns:x}-{status.st_ino:x}"'
        caching = [(b"cache-control", b"no-cache"), (b"etag", etag.encode()), *links]
        condition = next(
            (value for name, value in scope["headers"] if name == b"if-none-match"), b""
        )
        if condition and names_weakly(condition.decode("latin-1"), etag):
            start = {"type": "http.response.start", "status": NOT_MODIFIED, "headers": caching}
            await send(start)
            await send({"type": "http.response.body"})
            return
        # It is small, and only ever replaced as a whole: the open file does not change.
        await Responder(send, _TYPE, b"", caching).send_all(os.pread(handle, status.st_size, 0))
    finally:
        os.close(handle)
