"""Small records of the client root that only influence an order: rows of JSON, for all modules.

Rule: a file is replaced as a whole and not synced to the disk, and a lost or damaged one counts as
empty, so nothing but an order may depend on it.
"""

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from huai_program.durable import replace_file

_BYTES_MAX = 1 << 20


def read_rows(path: Path | None) -> list[list[object]]:
    """Return the rows of the file; an empty list if it is missing, too large, or malformed."""
    if path is None:
        return []
    try:
        with path.open("rb") as file:
            rows = json.loads(file.read(_BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return []
    is_valid = isinstance(rows, list) and all(isinstance(row, list) for row in rows)
    return rows if is_valid else []


def write_rows(path: Path | None, rows: Iterable[Sequence[object]]) -> None:
    """Replace the file, if that is possible."""
    if path is None:
        return
    fresh = path.with_suffix(f".{os.getpid()}.new")
    with suppress(OSError):
        # A message may quote a response that only this user may read.
        content = json.dumps([list(row) for row in rows], indent=0).encode()
        replace_file(path, content, fresh, permissions=0o600, durable=False)
