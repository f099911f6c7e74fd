"""Writes the file at the top of a tree that shows `huai-rsync` the place of its metadata.

Besides an export, the only place where the server writes into a mirrored tree, and only on request.
The file is an ordinary entry from then on: committed, mirrored, served by every rsync daemon.
"""

import os
import tempfile
from pathlib import Path

from huai_schema.codec.announcement import FILE_NAME, Announcement
from huai_server.scan.root import empty_root_error, holds_anything
from huai_server.state.errors import StorageError


def announce(tree: Path, announcement: Announcement) -> bool:
    """Write `announcement` as the file `huai-upstream` into `tree`, unless it is there unchanged.

    Returns True if it was written, in one step.  Raises `StorageError` if it cannot be written,
    and `EmptyRootError` for an empty tree: the next commit would contain nothing else.
    """
    path, text = tree / FILE_NAME, announcement.encode()
    try:
        if not holds_anything(tree):
            raise empty_root_error(tree, "announce when the tree has content")
        if path.is_file() and not path.is_symlink() and path.read_bytes() == text:
            return False
        handle, name = tempfile.mkstemp(prefix=f".{FILE_NAME}.", dir=tree)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text)
                os.fchmod(handle, 0o644)
                os.fsync(handle)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StorageError(
            f"{path}: {error.strerror}", hint="run as the owner of the tree"
        ) from error
    return True
