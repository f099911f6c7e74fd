"""Reads the file of a key: a regular file of a bounded size."""

import os
import stat
from pathlib import Path
from typing import NamedTuple, Self

_BYTES = 16_384
_OTHERS = 0o077


class KeyFile(NamedTuple):
    """The content of a key file; empty if the file is not a regular one."""

    data: bytes
    is_open_to_others: bool
    """True if its mode lets other users read or change it, which is wrong for a private key."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the first 16 KiB of the file; raises `OSError`."""
        # A pipe must not keep the program waiting.
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_BYTES) if stat.S_ISREG(mode) else b""
        return cls(data, bool(stat.S_IMODE(mode) & _OTHERS))
