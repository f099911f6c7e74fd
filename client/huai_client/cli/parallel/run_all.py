"""Runs the work of several modules, some at a time, and combines their exit codes.

If one crashes or is killed, the others continue.  Output goes to one stream as whole lines, each
with its module's name.
"""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import BinaryIO

import click
from msgspec.structs import replace

from huai_client.cli.console import Console
from huai_client.cli.parallel.children import CRASHED, Children, unblock_signals
from huai_program.ending import conclude
from huai_program.humanize import counted
from huai_schema.errors import ExitCode, worst_exit_code

Work = Callable[[str], int]
"""A function that does the work for a module, and returns the exit code."""


def with_name(name: bytes, line: bytes) -> bytes:
    """Return `line` with its module's name in front, unless it begins with it."""
    return line if line.startswith(name + b": ") else name + b": " + line


class Lines:
    """A writer that takes output in pieces, and writes whole lines with the module's name."""

    def __init__(self, name: str, target: BinaryIO, *, as_json: bool) -> None:
        """Write lines to `target`, with `name` in front of each unless they are JSON."""
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
        """Do the work of all modules in this order, at most `parallel` at a time; set `codes`."""
        with self._children as children:
            for name in names:
                while len(children) >= parallel:
                    children.poll(None)
                self._start(name)
            while children:
                children.poll(None)

    def _start(self, name: str) -> None:
        """Start the work on a module in a child process, whose lines get its name."""

        def ended(code: int, took: float) -> None:
            self.codes[name] = code
            self._ended(name, code, took)

        out = Lines(name, sys.stdout.buffer, as_json=self._as_json)
        err = Lines(name, sys.stderr.buffer, as_json=False)
        self._children.start(name, lambda: self._work(name), (out.feed, err.feed), ended)


def run_all(
    one: Callable[[str], int], names: Sequence[str], *, parallel: int, console: Console
) -> int:
    """Call `one` for each of `names` in a process; print a summary; return the worst exit code."""
    began = time.monotonic()

    def begin(name: str) -> int:
        unblock_signals()
        return one(name)

    def work(name: str) -> int:
        """Work on a module in the child process, print its error, and return the exit code."""
        return conclude(
            name,
            partial(begin, name),
            usage_errors=(click.ClickException,),
            aborts=(KeyboardInterrupt, click.Abort),
            as_json=console.as_json,
            module=name,
        )

    pool = ModulePool(work, partial(_ended, console), as_json=console.as_json)
    pool.run(names, parallel=parallel)
    codes = {name: pool.codes[name] for name in names}
    _conclude(console, codes, time.monotonic() - began)
    return worst_exit_code(codes.values())


def _ended(console: Console, name: str, code: int, seconds: float) -> None:
    """Report the end of a child process; log one that crashed."""
    if _exit_code(code) is None:
        # A crashed process logs nothing itself.
        replace(console, module=name).log(exit_meaning(code))
    milliseconds = round(1000 * seconds)
    console.event("ended", module=name, code=code, name=name_of(code), milliseconds=milliseconds)


def _conclude(console: Console, codes: dict[str, int], seconds: float) -> None:
    """Report the end of all modules as an event, and on standard error the failed ones."""
    failed = [name for name, code in codes.items() if code]
    code = worst_exit_code(codes.values())
    console.event(
        "all-ended",
        modules=len(codes),
        failed=failed,
        code=code,
        name=name_of(code),
        milliseconds=round(1000 * seconds),
    )
    if failed:
        reasons = ", ".join(f"{name} ({exit_meaning(codes[name])})" for name in failed)
        sys.stderr.write(
            f"huai-client: {len(failed)} of {counted(len(codes), 'module')} failed: {reasons}\n"
        )
    elif not console.quiet and not console.as_json:
        sys.stderr.write(
            f"huai-client: {counted(len(codes), 'module')} ended well in {seconds:.1f} s\n"
        )


def _exit_code(code: int) -> ExitCode | None:
    """Look up an exit code; None if unknown, and for a child's 1, which is a crash."""
    return next((each for each in ExitCode if each == code != CRASHED), None)


def name_of(code: int) -> str | None:
    """Return the name of a child's exit code; None if it is unknown, or 1, which is a crash."""
    exit_code = _exit_code(code)
    return None if exit_code is None else exit_code.name


def exit_meaning(code: int) -> str:
    """Return a child's exit code and its meaning; one that is unknown or 1 is a crash."""
    exit_code = _exit_code(code)
    return f"{code}, {'it crashed' if exit_code is None else exit_code.meaning}"
