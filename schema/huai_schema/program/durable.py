"""Replaces files so that a power cut leaves either the old or the new file.

Rule: content is on the disk before its name is, and the name before a function returns.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path


def replace_file(
    path: Path, content: bytes, temporary: Path, *, permissions: int | None = None
) -> None:
    """Replace a file as a whole in one durable step.

    `temporary` is in the same folder; the file that a killed run left there is overwritten.
    `permissions`: exactly these; None: those that the umask leaves.
    """
    with replacing(path, temporary, permissions=permissions) as file:
        file.write(content)


@contextmanager
def replacing(
    path: Path, temporary: Path, *, permissions: int | None = None
) -> Iterator[BufferedWriter]:
    """As `replace_file`, by what the block writes; a block that fails leaves the old file alone."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    mode = 0o666 if permissions is None else 0o600
    try:
        with open(os.open(temporary, flags, mode), "wb") as file:
            if permissions is not None:
                os.fchmod(file.fileno(), permissions)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
