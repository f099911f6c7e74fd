"""A response with a file: all of it, some of its ranges, or none because of a condition.

Rule: the length is sent first, so a file that changes meanwhile breaks the connection.
"""

import os
import time
from collections.abc import Mapping
from email.utils import formatdate

from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, Response
from starlette.types import Message, Receive, Scope, Send

from huai_server.http.asgi.conditions import FAILED, NOT_MODIFIED, Validators, judge
from huai_server.http.asgi.errors import HttpError
from huai_server.http.content.files import OpenFile

_TYPE = "application/octet-stream"


def answer(file: OpenFile, request_headers: Mapping[str, str]) -> Response:
    """Return the response to a GET or HEAD with an open file, or with status 304.

    Raises status 412 if a condition of the request is not met.
    """
    # A server must not send a time in the future (RFC 9110, section 8.8.2.1).
    modified = max(0, min(file.mtime // 1_000_000_000, int(time.time())))
    headers = {
        "accept-ranges": "bytes",
        # A path has other content after the next commit, so caches must revalidate.
        "cache-control": "no-cache",
        "etag": file.etag,
        "last-modified": formatdate(modified, usegmt=True),
        # No browser may run a mirrored file as a page of this server.
        "x-content-type-options": "nosniff",
    }
    status = judge(request_headers, Validators(file.etag, modified))
    if status == FAILED:
        raise HttpError(FAILED, "the file is not the version that the request names")
    if status == NOT_MODIFIED:
        return Response(status_code=NOT_MODIFIED, headers=headers)
    if len(file.beginning) == file.size and "range" not in request_headers:
        return Response(file.beginning, headers=headers, media_type=_TYPE)
    return _FileAnswer(file, headers)


class _FileAnswer(FileResponse):
    """A response sent at the pace of its reader."""

    chunk_size = 256 << 10
    """The memory that a slow reader takes."""

    def __init__(self, file: OpenFile, headers: Mapping[str, str]) -> None:
        # The open file, even if its path has another file by now.
        path = f"/proc/self/fd/{file.handle}"
        super().__init__(path, 200, headers, _TYPE, stat_result=os.fstat(file.handle))
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response; raises status 416, and `FileChangedError` for a changed file."""

        async def sending(message: Message) -> None:
            """Send a message; raise status 416, and `FileChangedError` for a changed file."""
            if message.get("status", 200) >= 400:
                size = {"Content-Range": f"bytes */{self._file.size}"}
                raise HttpError(416, "the file has none of these ranges", headers=size)
            if message.get("body"):
                await run_in_threadpool(self._file.check)
            await send(message)

        await super().__call__(scope, receive, sending)

    @classmethod
    def _parse_range_header(cls, http_range: str, file_size: int) -> list[tuple[int, int]]:
        """Parse a Range header; empty for one that must be ignored (RFC 9110, section 14.2)."""
        is_bytes = http_range.partition("=")[0].strip().lower() == "bytes"
        return super()._parse_range_header(http_range, file_size) if is_bytes else []

    @classmethod
    def _parse_ranges(cls, range_: str, file_size: int) -> list[tuple[int, int]]:
        """Parse the ranges; without those beyond the end, unless all are (section 14.1.2)."""
        ranges = super()._parse_ranges(range_, file_size)
        return [each for each in ranges if each[0] < file_size] or ranges
