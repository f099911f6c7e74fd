"""Small files that hold one value as JSON: records of a program's earlier runs.

A file that is torn or of another kind counts as missing, and is replaced as a whole.
"""

from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from huai_program.durable import replace_file

T = TypeVar("T")


class RecordFile(Generic[T]):
    """A reader and writer for records of one type."""

    def __init__(
        self,
        kind: type[T],
        *,
        needed: bool = True,
        durable: bool = True,
        permissions: int | None = 0o600,
    ) -> None:
        """Read and write values of `kind`; if not `needed`, an unreadable file counts as missing.

        `durable` and `permissions` are as for `replace_file`.
        """
        self._kind = kind
        self._needed = needed
        self._durable = durable
        self._permissions = permissions

    def load(self, path: Path) -> T | None:
        """Return the value; None if the file is missing or malformed.

        Raises `OSError` if it cannot be read and is `needed`.
        """
        try:
            return msgspec.json.decode(path.read_bytes(), type=self._kind)
        except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
            return None  # msgspec raises subclasses of ValueError
        except OSError:
            if self._needed:
                raise
            return None

    def save(self, path: Path, value: T, *, durable: bool = True) -> None:
        """Write the value to the file, in one step.

        `durable`: False to skip waiting for the disk in this call.
        """
        content = msgspec.json.encode(value) + b"\n"
        durable = durable and self._durable
        temporary = path.with_name(f"{path.name}.new")
        replace_file(path, content, temporary, permissions=self._permissions, durable=durable)
