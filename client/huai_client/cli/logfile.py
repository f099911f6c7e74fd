"""The log file: a line, with its time, for each thing that is told.

Complete whatever the user wants to see on the screen: a transfer's troubles are noted down too.
Files that were refused are told of at the end of a run.  Rule: it is opened for each line, so that
whoever rotates it has nobody to notify, and several processes may write to it.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from huai_schema.errors import ExitCode, HuaiError

if TYPE_CHECKING:
    from huai_client.transfer.listener import Listener


class LogFileError(HuaiError):
    """The log file cannot be written."""

    exit_code = ExitCode.FILE_IO


class LogFile:
    """Where lines are appended."""

    def __init__(self, path: Path) -> None:
        """Makes the file if it is missing; `LogFileError` if nothing can be written there."""
        self._path = path
        try:
            append(path, b"", 0o640)
        except OSError as error:
            raise LogFileError(
                f"{path}: {error.strerror}", hint="make its folder, or look at the permissions"
            ) from error

    def write(self, module: str, text: str) -> None:
        """Append a line; if that fails it is lost, and the run goes on."""
        told = text.removeprefix(f"{module}: ").replace("\n", " ")
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        line = f"{stamp} [{os.getpid()}] {module}: {told}\n"
        with suppress(OSError):
            append(self._path, line.encode("utf-8", "backslashreplace"), 0o640)


def append(path: Path, line: bytes, mode: int) -> None:
    """Add a line to a file, which is made with `mode` if it is missing."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    handle = os.open(path, flags, mode)
    try:
        os.write(handle, line)
    finally:
        os.close(handle)


@contextmanager
def failures_told(log: LogFile | None, module: str) -> Iterator[None]:
    """Write an exception that ends the block to the log, if there is one."""
    try:
        yield
    except BaseException as error:
        if log:
            log.write(module, _reason(error))
        raise


def _reason(error: BaseException) -> str:
    if isinstance(error, HuaiError):
        return f"{error.message} (exit code {int(error.exit_code)})"
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED.meaning
    if isinstance(error, Exception):
        return f"crashed: {error!r}"
    return ExitCode.TERMINATED.meaning


class LoggedProgress:
    """Passes all calls on, and logs why a transfer takes long."""

    def __init__(self, shown: "Listener", note: Callable[[str], None]) -> None:
        """`note` takes a line."""
        self._shown = shown
        self._note = note
        self.started = shown.started
        self.progressed = shown.progressed
        self.finished = shown.finished
        self.refused = shown.refused
        self.ended = shown.ended

    def retried(self, reason: str) -> None:
        """Note it."""
        self._note(f"trying again: {reason}")
        self._shown.retried(reason)

    def waiting(self, reason: str) -> None:
        """Note it."""
        self._note(f"waiting: {reason}")
        self._shown.waiting(reason)
