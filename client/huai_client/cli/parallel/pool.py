"""Runs the work of several modules, some at a time, and prints their output.

The output goes to one stream as whole lines, each with its module's name.  If a signal ends this
process, it sends the signal once to each child, waits, and kills those that still run; the next run
finishes their work.
"""

import sys
from collections.abc import Callable, Iterable
from typing import BinaryIO

from huai_client.cli.parallel.children import Children

Work = Callable[[str], int]
"""A function that does the work for a module, and returns the exit code."""


def with_name(name: bytes, line: bytes) -> bytes:
    """Return `line` with its module's name in front, unless it begins with it."""
    return line if line.startswith(name + b": ") else name + b": " + line


class Lines:
    """A collector of pieces of output that writes lines."""

    def __init__(self, name: str, target: BinaryIO, *, as_json: bool) -> None:
        """Write to `target`, with `name` in front unless the lines are JSON, which contain it."""
        self._name = b"" if as_json else name.encode()
        self._target = target
        self._begun = b""

    def feed(self, piece: bytes) -> None:
        """Add a piece, and write the lines that are complete; an empty piece is the end."""
        *lines, self._begun = (self._begun + piece).split(b"\n")
        if not piece and self._begun:
            lines, self._begun = [self._begun], b""
        if not lines:
            return
        output = (with_name(self._name, line) if self._name else line for line in lines)
        self._target.write(b"".join(line + b"\n" for line in output))
        self._target.flush()


class ModulePool:
    """A pool of processes, one for each module."""

    def __init__(
        self, work: Work, ended: Callable[[str, int, float], None], *, as_json: bool
    ) -> None:
        """Call `ended` with a module's name, its exit code and its duration in seconds."""
        self._work = work
        self._ended = ended
        self._as_json = as_json
        self._children = Children()
        self.codes: dict[str, int] = {}
        """The exit codes of the modules that have ended."""

    def run(self, names: Iterable[str], *, parallel: int) -> None:
        """Do the work of all modules in this order, at most `parallel` at a time."""
        with self._children as children:
            for name in names:
                while len(children) >= parallel:
                    children.poll(None)
                self._start(name)
            while children:
                children.poll(None)

    def _start(self, name: str) -> None:
        def ended(code: int, took: float) -> None:
            self.codes[name] = code
            self._ended(name, code, took)

        out = Lines(name, sys.stdout.buffer, as_json=self._as_json)
        err = Lines(name, sys.stderr.buffer, as_json=False)
        self._children.start(name, lambda: self._work(name), (out.feed, err.feed), ended)
