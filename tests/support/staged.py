"""Paths in a staging area, for tests that read or spoil its files."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from huai_client.staging import Staging
from huai_client.tree.handles import handle_path
from huai_schema.entries import File


def ready(staging: Staging, file: File) -> Path:
    """The content of a ready file; what is a patch is changed now."""
    staging.places([file])
    place = staging.locate(file)
    assert place is not None
    handle, name = place
    return handle_path(handle).readlink() / os.fsdecode(name)


def incoming(staging: Staging, run: int) -> Path:
    """The folder that the rsync of `run` writes to, made if absent."""
    with staging.incoming.opened(run):
        pass
    return staging.root / "incoming" / str(run)


def bytes_in(paths: Iterable[Path]) -> int:
    """Return the bytes of those files that are still there: rsync renames them."""
    size = 0
    for path in paths:
        with suppress(FileNotFoundError):
            status = path.lstat()
            size += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return size
