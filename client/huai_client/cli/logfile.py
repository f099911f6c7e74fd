"""The log file: a line with its time for each message of a run.

It is complete even with `--quiet`: the retries and waits of a transfer are logged as well.  Files
that failed are listed at the end of a run.  Rule to keep: the file is opened for each line, so that
several processes can write to it and logrotate has to notify none of them.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from huai_schema.errors import ExitCode, HuaiError


class LogFileError(HuaiError):
    """An error because the log file cannot be written."""


class LogFile:
    """A file to which lines are appended."""

    def __init__(self, path: Path) -> None:
        """Create the file if it is missing; raises `LogFileError` if it cannot be written."""
        self._path = path
        try:
            append(path, b"", 0o640)
        except OSError as error:
            raise LogFileError(
                f"the log file {path} cannot be written: {error.strerror}",
                hint=f"create {path.parent}, or give this user the right to write there",
            ) from error

    def write(self, module: str, text: str) -> None:
        """Append a line about `module`, with `text` and the time; a failure is ignored."""
        message = text.removeprefix(f"{module}: ").replace("\n", " ")
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        line = f"{stamp} [{os.getpid()}] {module}: {message}\n"
        with suppress(OSError):
            append(self._path, line.encode("utf-8", "backslashreplace"), 0o640)


def append(path: Path, line: bytes, mode: int) -> None:
    """Append `line` to a file, which is created with `mode` if it is missing; raises `OSError`."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    handle = os.open(path, flags, mode)
    try:
        os.write(handle, line)
    finally:
        os.close(handle)


@contextmanager
def log_failures(log: LogFile | None, module: str) -> Iterator[None]:
    """Write an exception that ends the block to `log`, if given, and raise it again."""
    try:
        yield
    except BaseException as error:
        if log:
            log.write(module, _reason(error))
        raise


def _reason(error: BaseException) -> str:
    """Return the reason that a log line gives for an error."""
    if isinstance(error, HuaiError):
        return f"{error.message} (exit code {int(error.exit_code)})"
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED.meaning
    if isinstance(error, Exception):
        return f"crashed: {error!r}"
    return ExitCode.TERMINATED.meaning
