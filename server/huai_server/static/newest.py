"""The commit that a module's own static files name, read cheaply enough to be compared often."""

import re
from contextlib import suppress
from pathlib import Path

from huai_schema.codec.static_files import FOLDER, HEAD, MAGIC
from huai_server.store.repository import read_branch

_BYTES = 128
_NEWEST = re.compile(MAGIC + rb"[0-9]+\ncommit\t([0-9a-f]{40})\t")


def newest_published(repository: Path) -> str | None:
    """Return the newest commit (hex id) of the head in `repository`; None without a valid head."""
    with suppress(OSError), open(f"{repository}/{FOLDER}/{HEAD}", "rb") as file:
        match = _NEWEST.match(file.read(_BYTES))
        return match[1].decode() if match else None
    return None


def is_published(repository: Path) -> bool:
    """Return True if the static files in `repository` are those of its newest commit.

    Also if it has neither.
    """
    return newest_published(repository) == read_branch(repository)
