"""Output of run_all processes in one stream: whole lines, each with its module's name.

Pure but for the stream that it writes to.
"""

from typing import BinaryIO


def named(name: bytes, line: bytes) -> bytes:
    """`line` with its module's name in front, unless it says that already."""
    return line if line.startswith(name + b": ") else name + b": " + line


class Lines:
    """Gathers pieces of output, and writes lines."""

    def __init__(self, name: str, target: BinaryIO, *, as_json: bool) -> None:
        """Lines of JSON carry the name in themselves."""
        self._name = b"" if as_json else name.encode()
        self._target = target
        self._begun = b""

    def hear(self, piece: bytes) -> None:
        """Write what is complete by now; an empty piece says that no more comes."""
        *lines, self._begun = (self._begun + piece).split(b"\n")
        if not piece and self._begun:
            lines, self._begun = [self._begun], b""
        if not lines:
            return
        told = (named(self._name, line) if self._name else line for line in lines)
        self._target.write(b"".join(line + b"\n" for line in told))
        self._target.flush()
