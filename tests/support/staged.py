"""Where things lie in a staging area, for tests that look at its files or spoil them."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from huai_client.transfer.staging import Staging, key_of
from huai_schema.entries import File


def ready(staging: Staging, file: File) -> Path:
    """The content of a ready file."""
    return staging.root / "ready" / key_of(file)


def incoming(staging: Staging, stream: int) -> Path:
    """The folder that `stream`'s rsync writes to, made if absent."""
    os.close(staging.open_incoming(stream))
    return staging.root / "incoming" / str(stream)


def bytes_in(paths: Iterable[Path]) -> int:
    """What the files among them hold, as far as they still lie there: rsync renames them."""
    size = 0
    for path in paths:
        with suppress(FileNotFoundError):
            status = path.lstat()
            size += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return size
