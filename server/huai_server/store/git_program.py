"""Git, as the server starts it: found on PATH, with no configuration except the repository's.

`http.git.upload_pack` runs it for a fetch, through asyncio; this module runs it on packs.  Rules:
command line and environment consist of constants, our own paths and numbers; and no configuration
of a repository, which another user may write, makes it run a program or contact another machine.
It runs no hook, pager, filter or `uploadpack.packObjectsHook` of a repository.  The exception is a
partial clone, whose missing objects git fetches by a command of that configuration.
"""

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, ClassVar

from huai_program.git import git_environment
from huai_program.programs import started
from huai_program.quoting import quoted
from huai_schema.errors import ExitCode, HuaiError

_CHUNK = 256 << 10
_TALK_BYTES = 4096
_OPTIONS = (("pack.writeReverseIndex", "false"), ("pack.threads", "1"))
"""The packs of a commit are small: they need no further file and no second core."""

_FULL = ("No space left on device", "Disk quota exceeded", "Out of diskspace")
"""Git's messages for a full disk: the system's in English, and its own."""


class GitMissingError(HuaiError):
    """The program `git` is missing."""

    exit_code: ClassVar[ExitCode] = ExitCode.REQUIREMENT

    def __init__(self) -> None:
        super().__init__("the program `git` is not in PATH", hint="install git 2.38 or newer")


class GitFailedError(HuaiError):
    """Git ended with an error, most likely because the repository is damaged."""

    exit_code = ExitCode.UNSOUND


def find_git() -> str:
    """Return the path of the program; raises `GitMissingError`."""
    program = shutil.which("git")
    if program is None:
        raise GitMissingError
    return program


def run_git(
    repository: Path,
    arguments: Sequence[str],
    *,
    stdin: bytes | IO[bytes] = b"",
    put: Callable[[bytes], object],
) -> None:
    """Run git on a repository to its end; `put` is called with each part of its output.

    `arguments` begin with git's command.  Git must read all of `stdin`, bytes or a file, before it
    prints anything.  It ends soon after this process, because its output pipe is closed then.  An
    error of `put` ends git.  Raises `GitFailedError` unless git exits with 0, `GitMissingError`,
    and `OSError` (ENOSPC) for a full disk.
    """
    program, place = find_git(), os.path.realpath(repository)
    options = (("safe.directory", place), *_OPTIONS)  # it may be another user's
    with tempfile.TemporaryFile() as talk:
        with started(
            [program, f"--git-dir={place}", *arguments],
            stdin=subprocess.PIPE if isinstance(stdin, bytes) else stdin,
            stdout=subprocess.PIPE,
            stderr=talk,
            env=git_environment(options),
            cwd="/",
        ) as process:
            if isinstance(stdin, bytes):
                _feed(process.stdin, stdin)
            _drain(process.stdout, put)
            process.wait()
        if process.returncode:
            talk.seek(0)
            message = talk.read(_TALK_BYTES).decode("utf-8", "backslashreplace").strip()
            _raise_if_full(message, repository)
            message = quoted(message)
            raise GitFailedError(
                f"{repository}: git {arguments[0]} ended with {process.returncode}: {message}",
                hint="`huai-server check` names what is damaged",
            )


def _raise_if_full(message: str, place: Path) -> None:
    """Raise `OSError` (ENOSPC) if `message` is git's for a full disk."""
    if any(words in message for words in _FULL):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))


def _feed(pipe: IO[bytes] | None, data: bytes) -> None:
    """Write data to a program, and close the pipe; a program that ended is ignored."""
    if pipe is not None:
        try:
            with pipe:
                pipe.write(data)
        except BrokenPipeError:
            pass  # it has ended: its exit code says why


def _drain(pipe: IO[bytes] | None, put: Callable[[bytes], object]) -> None:
    """Call `put` with each part of a program's output, until it ends."""
    while pipe is not None and (data := pipe.read(_CHUNK)):
        put(data)
