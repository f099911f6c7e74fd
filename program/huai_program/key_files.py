"""Reading the file of a key: a regular one, of a bounded size."""

import os
import stat
from pathlib import Path
from typing import NamedTuple, Self

_BYTES = 16_384
_OTHERS = 0o077


class KeyFile(NamedTuple):
    """What is in it; nothing, if it is no regular file."""

    data: bytes
    is_open_to_others: bool
    """Whether its mode lets another user read or change it: no private key belongs there."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises `OSError`."""
        # A pipe must not keep the program waiting.
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_BYTES) if stat.S_ISREG(mode) else b""
        return cls(data, bool(stat.S_IMODE(mode) & _OTHERS))
