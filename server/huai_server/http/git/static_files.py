"""Serves static files (FORMAT.md, "Static transport") from the repository, where commits put them.

Rule: the place that is asked for is compared with the few forms that there are before it is opened.
"""

import os
import re
from pathlib import Path

from huai_schema.codec.static_files import FOLDER, HEAD
from huai_server.http.asgi.conditions import NOT_MODIFIED, names_weakly
from huai_server.http.asgi.errors import HttpError
from huai_server.http.asgi.responder import FOREVER, Responder, Send

_DIGEST = "[0-9a-f]{64}"
_PLACE = re.compile(rf"{FOLDER}/(?:{HEAD}|packs/{_DIGEST}\.pack|lists/{_DIGEST})")
_HEAD = f"{FOLDER}/{HEAD}"
_TYPE = b"application/octet-stream"


def asked_static(operation: str) -> bool:
    """Whether an address below the repository's is one of a static file."""
    return _PLACE.fullmatch(operation) is not None


async def send_static(
    repository: Path, place: str, headers: list[tuple[bytes, bytes]], send: Send
) -> None:
    """Answer with the file at `place`, which `asked_static` has found to be one."""
    try:
        handle = os.open(f"{repository}/{place}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        # A commit makes the first head; an older version made none.
        hint = "the operator can run: huai-server publish NAME" if place == _HEAD else ""
        raise HttpError(404, "there is no such static file", hint=hint) from None
    try:
        status = os.fstat(handle)
        if place != _HEAD:
            await Responder(send, _TYPE, b"", FOREVER).file(handle)
            return
        etag = f'"{status.st_mtime_ns:x}-{status.st_ino:x}"'
        caching = [(b"cache-control", b"no-cache"), (b"etag", etag.encode())]
        known = next((value for name, value in headers if name == b"if-none-match"), b"")
        if known and names_weakly(known.decode("latin-1"), etag):
            start = {"type": "http.response.start", "status": NOT_MODIFIED, "headers": caching}
            await send(start)
            await send({"type": "http.response.body"})
            return
        # As small as this, and it is replaced as a whole: what was opened stays what it is.
        await Responder(send, _TYPE, b"", caching).whole(os.pread(handle, status.st_size, 0))
    finally:
        os.close(handle)
