"""Bundles: many small files in one response (FORMAT.md, "Bundles").

The engine reads the files, in a thread, while the part before them is sent.
"""

import asyncio
import os
from concurrent.futures import Executor

from huai_native._native import BundleReader
from huai_schema.errors import HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_schema.limits import BUNDLE_PATHS
from huai_server.http.asgi.body import Body
from huai_server.http.asgi.errors import ClientGoneError, HttpError
from huai_server.http.asgi.responder import Responder, Send
from huai_server.http.asgi.threads import in_thread

_RESPONSE_BYTES = 256 << 20
"""A response ends with the first file after so many bytes."""
_PART_BYTES = 256 << 10
_TYPE = b"application/x-huai-bundle"


async def requested_paths(body: Body) -> bytes:
    """Return the paths of a request, each ended by NUL; an `HttpError` refuses them."""
    await body.open()
    paths = b"".join([body.head, *[part async for part in body.rest()]])
    if not paths.endswith(b"\0"):
        raise HttpError(400, "each path of the request must end with NUL")
    if paths.count(0) > BUNDLE_PATHS:
        raise HttpError(413, f"the request has more than {BUNDLE_PATHS} paths")
    return paths


async def send_bundle(
    snapshot: Snapshot, tree: bytes, paths: bytes, send: Send, pool: Executor
) -> None:
    """Send the files of `snapshot` at `paths` below the folder `tree`.

    `UnreadableError` before the first byte, `ClientGoneError` later.
    """
    out = Responder(send, _TYPE, b"")

    def open_bundle() -> BundleReader:
        return BundleReader(snapshot.arguments, tree, paths, _RESPONSE_BYTES)

    try:
        reader = await in_thread(open_bundle, pool)
        part = await in_thread(lambda: reader.read(_PART_BYTES), pool)
        while part:
            following = in_thread(lambda: reader.read(_PART_BYTES), pool)
            part, _ = await asyncio.gather(following, out.piece(part))
        await out.end()
    except (HuaiError, OSError) as error:
        message = error.message if isinstance(error, HuaiError) else os.strerror(error.errno or 0)
        raise (ClientGoneError if out.started else UnreadableError)(message) from error


class UnreadableError(HuaiError):
    """The metadata or the tree of a module cannot be read; the message has paths of the machine."""
