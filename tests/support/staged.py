"""Where things lie in a staging area, for tests that look at its files or spoil them."""

import os
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
