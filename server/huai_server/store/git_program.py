"""Git, as the server starts it: found on PATH, and with no configuration but the repository's.

`http.git.upload_pack` runs it for a fetch, through asyncio; here it works on packs.  Rules: command
line and environment are made of constants, paths of our own and numbers; and no configuration of a
repository, which another user may write, makes it run a program or ask another machine.  What is
started here runs no hook, pager, filter or `uploadpack.packObjectsHook` of a repository.  What is
left is a partial clone, whose missing objects git fetches by a command of that configuration.
"""

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, ClassVar

from huai_program.quoting import quoted
from huai_schema.errors import ExitCode, HuaiError

_CHUNK = 256 << 10
_TALK_BYTES = 4096
_OPTIONS = ("pack.writeReverseIndex=false", "pack.threads=1")
"""As small as the packs of a commit are: no further file beside them, no further core."""

_FULL = ("No space left on device", "Disk quota exceeded", "Out of diskspace")
"""What git says of a full disk: the system's words in English, and its own."""


class GitMissingError(HuaiError):
    """There is no git to run."""

    exit_code: ClassVar[ExitCode] = ExitCode.REQUIREMENT

    def __init__(self) -> None:
        """No arguments: there is only one way to be missing."""
        super().__init__("the program `git` is not in PATH", hint="install git 2.38 or newer")


class GitFailedError(HuaiError):
    """Git ended with an error, most likely because the repository is damaged."""

    exit_code = ExitCode.UNSOUND


def find_git() -> str:
    """The path of the program; `GitMissingError`."""
    program = shutil.which("git")
    if program is None:
        raise GitMissingError
    return program


def git_environment(program: str) -> dict[str, str]:
    """The whole environment of a process."""
    return {
        "PATH": f"{Path(program).parent}:/usr/bin:/bin",
        "LC_ALL": "C",
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_NO_LAZY_FETCH": "1",  # git 2.45 and newer
        "GIT_ALLOW_PROTOCOL": "none",  # any: with this, all but a protocol of this name are off
    }


def git_options(repository: str, options: Sequence[str]) -> list[str]:
    """Return arguments that set `options` for a repository that may be another user's."""
    return [part for each in (f"safe.directory={repository}", *options) for part in ("-c", each)]


def run_git(
    repository: Path,
    arguments: Sequence[str],
    *,
    stdin: bytes | IO[bytes] = b"",
    put: Callable[[bytes], object],
) -> None:
    """Run git on a repository; what it prints goes to `put`, piece by piece.

    It reads all of `stdin`, bytes or a file, before it prints anything.  It ends soon if this
    process does: nobody reads what it prints then.  Raises `GitFailedError`, and `OSError` where
    the disk is full; what `put` raises ends it.
    """
    program, place = find_git(), os.path.realpath(repository)
    with tempfile.TemporaryFile() as talk:
        process = subprocess.Popen(
            [program, *git_options(place, _OPTIONS), f"--git-dir={place}", *arguments],
            stdin=subprocess.PIPE if isinstance(stdin, bytes) else stdin,
            stdout=subprocess.PIPE,
            stderr=talk,
            env=git_environment(program),
            cwd="/",
        )
        with process:
            try:
                if isinstance(stdin, bytes):
                    _feed(process.stdin, stdin)
                _drain(process.stdout, put)
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            talk.seek(0)
            said = talk.read(_TALK_BYTES).decode("utf-8", "backslashreplace").strip()
            _raise_full(said, repository)
            said = quoted(said)
            raise GitFailedError(
                f"{repository}: git {arguments[0]} ended with {process.returncode}: {said}",
                hint="`huai-server check` names what is damaged",
            )


def _raise_full(said: str, place: Path) -> None:
    """Raise the error that git tells of, if it is one that passes once there is room."""
    if any(words in said for words in _FULL):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))


def _feed(pipe: IO[bytes] | None, data: bytes) -> None:
    if pipe is not None:
        try:
            with pipe:
                pipe.write(data)
        except BrokenPipeError:
            pass  # it ended: its exit code says why


def _drain(pipe: IO[bytes] | None, put: Callable[[bytes], object]) -> None:
    while pipe is not None and (data := pipe.read(_CHUNK)):
        put(data)
