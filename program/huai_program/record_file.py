"""Small files that hold one value as JSON: what a program knows of its earlier runs.

A file that is missing, torn or of another kind counts as none, and is replaced as a whole.
"""

from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from huai_program.durable import replace_file

T = TypeVar("T")


class RecordFile(Generic[T]):
    """The way in which records of one kind are kept."""

    def __init__(
        self,
        kind: type[T],
        *,
        needed: bool = True,
        durable: bool = True,
        permissions: int | None = 0o600,
    ) -> None:
        """`needed`: False where a record that the disk does not give counts as none.

        `durable`, `permissions`: as for `replace_file`.
        """
        self._kind = kind
        self._needed = needed
        self._durable = durable
        self._permissions = permissions

    def load(self, path: Path) -> T | None:
        """Return the value; None if there is none."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=self._kind)
        except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
            return None  # msgspec's errors are of the third kind
        except OSError:
            if self._needed:
                raise
            return None

    def save(self, path: Path, value: T, *, durable: bool = True) -> None:
        """Replace the value."""
        content = msgspec.json.encode(value) + b"\n"
        durable = durable and self._durable
        temporary = path.with_name(f"{path.name}.new")
        replace_file(path, content, temporary, permissions=self._permissions, durable=durable)
