"""Runs the work of several modules, so many at a time, and prints their output.

The output goes to one stream as whole lines, each with its module's name.  If a signal ends this
process, it sends the signal once to each child, waits, and kills those that still run; the next run
finishes their work.
"""

import sys
from collections.abc import Callable, Iterable
from typing import BinaryIO

from huai_client.cli.parallel.children import Children

Work = Callable[[str], int]
"""What is done for the module of that name; gives the exit code."""


def named(name: bytes, line: bytes) -> bytes:
    """`line` with its module's name in front, unless it begins with that."""
    return line if line.startswith(name + b": ") else name + b": " + line


class Lines:
    """Gathers pieces of output, and writes lines."""

    def __init__(self, name: str, target: BinaryIO, *, as_json: bool) -> None:
        """Lines of JSON carry the name in themselves."""
        self._name = b"" if as_json else name.encode()
        self._target = target
        self._begun = b""

    def hear(self, piece: bytes) -> None:
        """Add a piece, and write the lines that are complete; an empty piece is the end."""
        *lines, self._begun = (self._begun + piece).split(b"\n")
        if not piece and self._begun:
            lines, self._begun = [self._begun], b""
        if not lines:
            return
        told = (named(self._name, line) if self._name else line for line in lines)
        self._target.write(b"".join(line + b"\n" for line in told))
        self._target.flush()


class ModulePool:
    """The processes of several modules."""

    def __init__(
        self, work: Work, ended: Callable[[str, int, float], None], *, as_json: bool
    ) -> None:
        """`ended` hears a module's name, its exit code and how many seconds it took."""
        self._work = work
        self._told = ended
        self._as_json = as_json
        self._children = Children()
        self.codes: dict[str, int] = {}
        """Of those that have ended."""

    def run(self, names: Iterable[str], *, parallel: int) -> None:
        """Do the work of all, at most `parallel` at a time, begun in this order."""
        with self._children as children:
            for name in names:
                while len(children) >= parallel:
                    children.hear(None)
                self._start(name)
            while children:
                children.hear(None)

    def _start(self, name: str) -> None:
        def ended(code: int, took: float) -> None:
            self.codes[name] = code
            self._told(name, code, took)

        out = Lines(name, sys.stdout.buffer, as_json=self._as_json)
        err = Lines(name, sys.stderr.buffer, as_json=False)
        self._children.start(name, lambda: self._work(name), (out.hear, err.hear), ended)
