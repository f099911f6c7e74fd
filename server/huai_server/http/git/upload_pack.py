"""A `git upload-pack` process: started, fed, read and always reaped.

The only module of the HTTP side that runs a program.  Rule: command line and environment consist
of constants, a path from the registry and numbers, and contain nothing of a request.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from huai_program.git import git_environment
from huai_schema.git.objects import BRANCH
from huai_server.http.asgi.body import Body
from huai_server.http.asgi.errors import HttpError
from huai_server.store.git_program import GitMissingError, find_git

_CHUNK = 64 << 10
_TALK_BYTES = 4096
_REAP_SECONDS = 10.0

_OPTIONS = (
    # Only the branch is advertised.
    ("transfer.hideRefs", "refs"),
    ("transfer.hideRefs", f"!{BRANCH}"),
    # `git clone --filter`, with filters that cost no more than a clone without one.
    ("uploadpack.allowFilter", "true"),
    ("uploadpackfilter.allow", "false"),
    ("uploadpackfilter.blob:none.allow", "true"),
    ("uploadpackfilter.tree.allow", "true"),
    # A commit made between two requests of a client must not turn its want into an error.
    # Protocol v2 accepts any id anyway, and all objects of the repository are public.
    ("uploadpack.allowAnySHA1InWant", "true"),
    ("pack.threads", "1"),
)


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of one process."""

    repository: Path
    version: int
    """The protocol version: 0, 1 or 2."""
    advert: bool
    """True to send the advertisement of refs; false to read a request from standard input."""


class UploadPack:
    """A running process; made by `Git.start`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Take over `process`, whose three streams must be pipes; `end` must be called."""
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise TypeError("the process was started without pipes")
        self._process = process
        self._in, self._out, self._err = process.stdin, process.stdout, process.stderr
        self._talk = asyncio.ensure_future(self._listen())

    async def feed(self, body: Body | None) -> None:
        """Write the request, if there is one, and close git's input.

        Raises as `Body.rest` does; git may stop reading before the end of the body.
        """
        with suppress(BrokenPipeError, ConnectionResetError):
            if body is not None:
                await self._write(body.head)
                if not body.complete:
                    async for chunk in body.rest():
                        await self._write(chunk)
            self._in.close()

    async def _write(self, data: bytes) -> None:
        """Write to git's input; `BrokenPipeError` if git closed it."""
        # Once the process has closed its end, uvloop answers a write with a RuntimeError.
        if self._in.is_closing():
            raise BrokenPipeError
        self._in.write(data)
        await self._in.drain()

    async def read(self) -> bytes:
        """Return the next part of the response; empty at its end."""
        return await self._out.read(_CHUNK)

    async def finish(self) -> tuple[int, str]:
        """Wait for the end; return the exit code (negative: signal) and the beginning of stderr."""
        code = await self._process.wait()
        return code, (await self._talk).decode("utf-8", "backslashreplace").strip()

    async def _listen(self) -> bytes:
        """Read standard error, so that the pipe never fills, and keep its beginning."""
        beginning = b""
        while chunk := await self._err.read(_CHUNK):
            beginning += chunk[: _TALK_BYTES - len(beginning)]
        return beginning

    async def end(self) -> None:
        """Kill a process that still runs, with its helpers, and wait at most 10 s for its end."""
        process = self._process
        if process.returncode is None:
            # The whole process group, to end pack-objects too.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            async with asyncio.timeout(_REAP_SECONDS):
                while await self._out.read(_CHUNK):
                    pass  # an unread pipe would stay open
                await process.wait()
                await self._talk
        self._talk.cancel()


class Git:
    """A starter of `git upload-pack` processes."""

    def __init__(self, patience: float) -> None:
        """`patience`: seconds without input or output after which a process counts as stuck."""
        self.patience = patience

    @asynccontextmanager
    async def start(self, call: Call) -> AsyncIterator[UploadPack]:
        """Yield a process, which is killed at the end of the block if it still runs.

        Raises status 503 without git.
        """
        try:
            command = self.command(call)
        except GitMissingError as error:
            hint = "/git/NAME.git/static/ is served without it"
            raise HttpError(503, "git is not installed on this server", hint=hint) from error
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.environment(call),
            cwd="/",
            start_new_session=True,
        )
        child = UploadPack(process)
        try:
            yield child
        finally:
            await child.end()

    def command(self, call: Call) -> list[str]:
        """Return the whole command line; raises `GitMissingError`."""
        repository = os.path.realpath(call.repository)
        advert = ["--http-backend-info-refs"] if call.advert else []
        return [
            find_git(),
            "upload-pack",
            "--stateless-rpc",
            "--strict",
            f"--timeout={max(1, round(self.patience))}",
            *advert,
            repository,
        ]

    def environment(self, call: Call) -> dict[str, str]:
        """Return the whole environment: no configuration except the repository's counts."""
        options = (("safe.directory", os.path.realpath(call.repository)), *_OPTIONS)
        protocol = {"GIT_PROTOCOL": f"version={call.version}"} if call.version else {}
        return {**git_environment(options), **protocol}
