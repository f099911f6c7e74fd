"""The replacement of a file with the status of the modules, as a whole.

Two runs that end at once replace it one after the other; each writes everything.
"""

import os
from pathlib import Path
from typing import ClassVar

from huai_program.durable import replace_file
from huai_schema.errors import ExitCode, HuaiError

_PERMISSIONS = 0o644
"""Readable for the user of a collector or web server."""


class StatusFileError(HuaiError):
    """The file cannot be written."""

    exit_code: ClassVar[ExitCode] = ExitCode.FILE_IO

    def __init__(self, path: Path, error: OSError) -> None:
        """Make an error from that of the file system."""
        super().__init__(
            f"{path} cannot be written: {error.strerror or error}",
            hint=f"create {path.parent}, or give this user the right to write there",
        )


def replace_status_file(path: Path, text: str) -> None:
    """Replace the file at once; raises `StatusFileError` and keeps the old one if that fails."""
    # A hidden name, which a collector or web server does not show.
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        replace_file(path, text.encode(), temporary, permissions=_PERMISSIONS, durable=False)
    except OSError as error:
        raise StatusFileError(path, error) from error
