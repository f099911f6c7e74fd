"""Replaces files so that a power cut leaves either the old or the new file.

Rule: content is on the disk before its name, and the name before a function returns; a file that
already has the temporary name is never opened.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path


def replace_file(
    path: Path,
    content: bytes,
    temporary: Path,
    *,
    permissions: int | None = None,
    durable: bool = True,
) -> None:
    """Replace a whole file in one step.

    `temporary` is in the same folder; a file that a killed run left there is removed.
    `permissions` are set exactly; None: those that the umask allows.
    `durable`: False for a file that may be lost in a power cut and must not wait for the disk.
    """
    with replacing(path, temporary, permissions=permissions, durable=durable) as file:
        file.write(content)


@contextmanager
def replacing(
    path: Path, temporary: Path, *, permissions: int | None = None, durable: bool = True
) -> Iterator[BufferedWriter]:
    """Yield a new file that replaces `path` after the block; if the block fails, the old stays.

    The parameters are as for `replace_file`.
    """
    try:
        with open_new(temporary, 0o666 if permissions is None else 0o600) as file:
            if permissions is not None:
                os.fchmod(file.fileno(), permissions)
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def open_new(path: Path, mode: int = 0o666) -> BufferedWriter:
    """Create a file and open it for writing, after removing any other of its name.

    Another user who may write to the folder could have created a symlink, hardlink or FIFO there.
    """
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return open(os.open(path, flags, mode), "wb")


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
