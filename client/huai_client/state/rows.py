"""Small records of the client root that only help to choose: rows of JSON, for all modules.

Rule: a file is replaced as a whole and not synced to the disk, and one that is lost or damaged
counts as empty, so nothing may depend on it but an order.
"""

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from huai_program.durable import replace_file

_BYTES_MAX = 1 << 20


def read_rows(path: Path | None) -> list[list[object]]:
    """What the file holds; nothing if it is missing, too large, or not rows."""
    if path is None:
        return []
    try:
        with path.open("rb") as file:
            rows = json.loads(file.read(_BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return []
    whole = isinstance(rows, list) and all(isinstance(row, list) for row in rows)
    return rows if whole else []


def write_rows(path: Path | None, rows: Iterable[Sequence[object]]) -> None:
    """Replace the file, if that is possible."""
    if path is None:
        return
    fresh = path.with_suffix(f".{os.getpid()}.new")
    with suppress(OSError):
        # A message in it may quote what an upstream said to this user alone.
        content = json.dumps([list(row) for row in rows], indent=0).encode()
        replace_file(path, content, fresh, permissions=0o600, durable=False)
