"""Replaces a file that tells others how the modules stand, as a whole.

Two runs that end at once replace it one after the other; the next one says it all again.
"""

import os
from pathlib import Path
from typing import ClassVar

from huai_program.durable import replace_file
from huai_schema.errors import ExitCode, HuaiError

_PERMISSIONS = 0o644
"""Another user reads the file."""


class StatusFileError(HuaiError):
    """The file cannot be written."""

    exit_code: ClassVar[ExitCode] = ExitCode.FILE_IO

    def __init__(self, path: Path, error: OSError) -> None:
        """`error` is that of the file system."""
        super().__init__(
            f"{path} cannot be written: {error.strerror or error}",
            hint=f"create {path.parent}, or give this user the right to write there",
        )


def replace_status_file(path: Path, text: str) -> None:
    """Nobody reads half of it; raises `StatusFileError`, and the old one stays then."""
    # No name that a collector or a web server shows.
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        replace_file(path, text.encode(), temporary, permissions=_PERMISSIONS, durable=False)
    except OSError as error:
        raise StatusFileError(path, error) from error
