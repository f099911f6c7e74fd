"""The real rsync in place of this program, with the same arguments.

One is added, which leaves out huai's own folders of a source: their content must come into a tree
from huai only.

Rule to keep: this must not call itself.  An rsync on PATH may be a wrapper that starts huai-rsync,
so an environment variable lists the programs that were tried; none is tried twice.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import NoReturn

from huai_schema.errors import ExitCode, HuaiError

HIDE = "--filter=hide .~tmp~/huai*"
"""A rule for the sending side only: an exclude would also protect entries of DEST."""
_SERVING = ("--server", "--daemon")
TRIED = "HUAI_RSYNC_TRIED"
"""The variable with the tried programs, separated as in PATH, for all child processes."""


class RsyncNeededError(Exception):
    """The real rsync has to carry out the request."""

    def __init__(self, reason: str) -> None:
        """Make an error with a `reason` for people."""
        super().__init__(reason)
        self.reason = reason


class NoRsyncError(HuaiError):
    """No rsync other than this one is installed."""

    exit_code = ExitCode.REQUIREMENT


def is_below() -> bool:
    """Return True if a huai-rsync has started this one, perhaps through a wrapper."""
    return TRIED in os.environ


def mark() -> None:
    """Mark all later child processes as started by a huai-rsync."""
    os.environ.setdefault(TRIED, "")


def exec_rsync(arguments: Sequence[str]) -> NoReturn:
    """Replace this process by the real rsync; raises `NoRsyncError` if none is on PATH."""
    sys.stdout.flush()
    tried = [each for each in os.environ.get(TRIED, "").split(os.pathsep) if each]
    for program in _programs():
        if program not in tried:
            os.environ[TRIED] = os.pathsep.join([*tried, program])
            os.execv(program, ["rsync", *_hiding(arguments)])  # noqa: S606 - no shell, as it was called
    raise NoRsyncError("rsync is missing on PATH", hint="install rsync")


def _hiding(arguments: Sequence[str]) -> Sequence[str]:
    """Return `arguments` with the rule `HIDE`, except for a call that copies nothing or serves."""
    copies = any(not each.startswith("-") for each in arguments)
    serves = any(each in _SERVING for each in arguments)
    return arguments if serves or not copies or HIDE in arguments else [HIDE, *arguments]


def run_rsync(arguments: Sequence[str], *, silent: bool = False) -> int:
    """Run the real rsync in a child process, `silent` or not; return its exit code.

    Raises `NoRsyncError` if none is on PATH.
    """
    if not _programs():
        raise NoRsyncError("rsync is missing on PATH", hint="install rsync")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            if silent:
                _silence()
            exec_rsync(arguments)
        finally:
            os._exit(int(ExitCode.REQUIREMENT))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _silence() -> None:
    """Redirect the three standard streams to /dev/null."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)


def _programs() -> list[str]:
    """Return each rsync on PATH except this program."""
    own = os.path.realpath(sys.argv[0])
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    programs = [shutil.which("rsync", path=folder) for folder in folders if folder]
    return [each for each in programs if each is not None and os.path.realpath(each) != own]
