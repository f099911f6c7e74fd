"""Reading ELF headers: whether a program can load a library."""

import struct
from pathlib import Path
from typing import NamedTuple

_IDENT = struct.Struct("4sBB")
_PROGRAM_INTERPRETER = 3


class Binary(NamedTuple):
    """An ELF file."""

    machine: tuple[int, int, int]
    """Class, byte order and processor; a library must have the program's."""
    dynamic: bool
    """Whether it asks for a dynamic loader, which is what preloads libraries."""


def inspect(path: Path) -> Binary | None:
    """The header of the file `path`; None if it is not an ELF file (a script, perhaps)."""
    with path.open("rb") as file:
        header = file.read(64)
        if len(header) < 64 or header[:4] != b"\x7fELF":
            return None
        _, width, order = _IDENT.unpack_from(header)
        mark = "<" if order == 1 else ">"
        (machine,) = struct.unpack_from(f"{mark}H", header, 18)
        wide = width == 2
        (offset,) = struct.unpack_from(f"{mark}{'Q' if wide else 'I'}", header, 32 if wide else 28)
        size, count = struct.unpack_from(f"{mark}HH", header, 54 if wide else 42)
        file.seek(offset)
        table = file.read(size * count)
    kinds = (struct.unpack_from(f"{mark}I", table, at)[0] for at in range(0, len(table), size or 1))
    return Binary((width, order, machine), _PROGRAM_INTERPRETER in kinds)
