"""A response of `git upload-pack`, sent as it comes.

Knows nothing of HTTP beyond the ASGI `send`.  A small response that comes soon is sent with its
length, after git's exit code was checked.  Rule: a failure inside a response that has begun drops
the connection, so that no client takes a part for the whole.
"""

import asyncio
import logging
from contextlib import suppress

from huai_program.quoting import quoted
from huai_server.http.asgi.body import Body, race
from huai_server.http.asgi.errors import ClientGoneError, HttpError
from huai_server.http.asgi.responder import Responder
from huai_server.http.git.upload_pack import Call, Git, UploadPack

GATHER_SECONDS = 1.0
"""The time that the first bytes of a response wait for the rest, to send its length."""
_GATHER_BYTES = 256 << 10
_CLIENT_FAULTS = (
    *("protocol error", "hung up", "unknown capability", "invalid command", "expected"),
    *("object format", "object-format", "requested", "deepen", "shallow line", "forbidden"),
    "not negotiated",
)

_log = logging.getLogger(__name__)


async def answer(git: Git, call: Call, body: Body | None, out: Responder) -> None:
    """Run git for one request, and send its output to `out`; the process has ended afterwards.

    Git's input is `body`, or empty for None.
    If git fails, raises `HttpError` before the first byte is sent, and `ClientGoneError` later.
    """
    async with git.start(call) as child:
        try:
            await race(_Response(call, child, git.patience, out).send(), child.feed(body))
            if not out.started:
                # Git takes an end inside a packet for the end; its own probe is a single flush.
                if body is not None and body.head.replace(b"0000", b""):
                    raise _bad_request_error()
                await out.send_all(b"")
        except HttpError as error:
            if out.started:
                raise ClientGoneError(error.message) from error
            raise


class _Response:
    def __init__(self, call: Call, child: UploadPack, patience: float, out: Responder) -> None:
        """`patience`: seconds without output after which git counts as stuck."""
        self._call = call
        self._child = child
        self._patience = patience
        self._out = out

    async def send(self) -> None:
        """Send git's output: with a length if it is short, or else piece by piece."""
        gathered, is_complete = await self._gather()
        if is_complete:
            await self._check_end(gathered)
            if gathered:
                await self._out.send_all(gathered)
            return
        await self._out.piece(gathered)
        while piece := await self._next_piece():
            await self._out.piece(piece)
        await self._check_end(b"")
        await self._out.end()

    async def _gather(self) -> tuple[bytes, bool]:
        """Return git's output of a second, or 256 KiB of it, and True if that is all of it."""
        gathered = bytearray(await self._next_piece())
        with suppress(TimeoutError):
            async with asyncio.timeout(GATHER_SECONDS):
                while len(gathered) < _GATHER_BYTES:
                    piece = await self._child.read()
                    if not piece:
                        return bytes(gathered), True
                    gathered += piece
        return bytes(gathered), False

    async def _next_piece(self) -> bytes:
        """Return git's next output, empty at its end; raise 504 after `patience` without any."""
        try:
            async with asyncio.timeout(self._patience):
                return await self._child.read()
        except TimeoutError:
            _log.error("git upload-pack on %s is stuck; killed", self._call.repository)
            raise HttpError(504, "git did not answer in time", hint="try again later") from None

    async def _check_end(self, gathered: bytes) -> None:
        """Wait for git's end, and log its failure; raise an error unless `gathered` reports it.

        `gathered` is what git sent so far, and not sent to the client yet.  The error is status 400
        for a fault of the client, else 500.
        """
        code, talk = await self._child.finish()
        if not code:
            return
        repository = self._call.repository
        is_fault = any(sign in talk for sign in _CLIENT_FAULTS)
        level = logging.INFO if is_fault else logging.WARNING
        _log.log(level, "git upload-pack on %s ended with %d: %s", repository, code, quoted(talk))
        if gathered:
            return  # an ERR packet: git's own words to its client
        # Not git's own text, which contains paths.
        if is_fault:
            raise _bad_request_error()
        raise HttpError(500, "the metadata repository cannot be read", hint="see the server's log")


def _bad_request_error() -> HttpError:
    return HttpError(400, "git does not understand this request")
