"""The files and the errors of a task, for its process: a record, written last, and signs of life.

The files are in one folder that all processes see: `KEY.shard`, the record, and `KEY.began`,
touched as long as the process works.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from huai_schema import __version__
from huai_schema.errors import ExitCode, HuaiError

RECORD, BEGAN = ".shard", ".began"
_BEAT = 2.0
"""Seconds between two signs of life."""


class EngineError(HuaiError):
    """The engine cannot be used, or a task failed in a way in which all others would fail."""

    def __init__(self, message: str, hint: str, code: ExitCode = ExitCode.NETWORK) -> None:
        """`code` is the exit code of the program."""
        super().__init__(message, hint=hint)
        self.exit_code = code  # type: ignore[misc] # that of the task


class TaskError(HuaiError):
    """An error of one task that others need not meet."""


def check_version(version: str, where: str = "the task") -> None:
    """Raise `EngineError` for another version than this one; `where` begins the message."""
    if version != __version__:
        raise EngineError(
            f"{where} was made by huai {version}, and this is {__version__}",
            "install one version on all nodes, and run this again",
            ExitCode.REQUIREMENT,
        )


@contextmanager
def alive(sign: Path) -> Iterator[None]:
    """Touch the file `sign` at the beginning of the block, and every two seconds in it."""
    end = Event()

    def touch() -> None:
        while not end.wait(_BEAT):
            sign.touch()

    sign.touch()
    thread = Thread(target=touch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
