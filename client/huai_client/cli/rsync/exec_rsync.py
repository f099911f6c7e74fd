"""The real rsync, in place of this program and with its very arguments.

Rule to keep: it never comes back here.  Whatever a chain of wrappers on PATH leads to, each
program that was tried stands in an environment variable and is not tried again; without any
left, that is the end.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import NoReturn

from huai_schema.errors import ExitCode, HuaiError

TRIED = "HUAI_RSYNC_TRIED"
"""Holds programs, divided as in PATH; its being there means: below a huai-rsync."""


class RsyncNeededError(Exception):
    """The call is the real rsync's."""

    def __init__(self, reason: str) -> None:
        """`reason` is for people."""
        super().__init__(reason)
        self.reason = reason


class NoRsyncError(HuaiError):
    """There is no rsync but this one."""

    exit_code = ExitCode.REQUIREMENT


def is_below() -> bool:
    """Whether a huai-rsync has started this one, through whatever is called rsync."""
    return TRIED in os.environ


def mark() -> None:
    """Let whatever is started from here on know."""
    os.environ.setdefault(TRIED, "")


def exec_rsync(arguments: Sequence[str]) -> NoReturn:
    """Become the real rsync; raises `NoRsyncError`."""
    sys.stdout.flush()
    tried = [each for each in os.environ.get(TRIED, "").split(os.pathsep) if each]
    for program in _programs():
        if program not in tried:
            os.environ[TRIED] = os.pathsep.join([*tried, program])
            os.execv(program, ["rsync", *arguments])  # noqa: S606 - no shell, as it was called
    raise NoRsyncError("there is no rsync on PATH", hint="install rsync")


def beside(arguments: Sequence[str], *, silent: bool = False) -> int:
    """The same in another process, `silent` if only its exit code is wanted; that code."""
    if not _programs():
        raise NoRsyncError("there is no rsync on PATH", hint="install rsync")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            if silent:
                _hear_nothing()
            exec_rsync(arguments)
        finally:
            os._exit(int(ExitCode.REQUIREMENT))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _hear_nothing() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)


def _programs() -> list[str]:
    """Everything on PATH that is called rsync, and is another program than this one."""
    here = os.path.realpath(sys.argv[0])
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    found = [shutil.which("rsync", path=folder) for folder in folders if folder]
    return [each for each in found if each is not None and os.path.realpath(each) != here]
