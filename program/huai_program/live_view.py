"""A table on a terminal: printed once, or redrawn every two seconds until the user ends it.

Knows no module and no state: the caller supplies the rows.  Rule: however it ends, the terminal is
restored.
"""

import os
import select
import shutil
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from click import UsageError

from huai_program.humanize import short_span
from huai_schema.errors import HuaiError

_SECONDS = 2.0
_QUIT = b"qQ\x04"
"""The keys that end the view: q and Ctrl-D."""
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""Switches to the alternate screen, hides the cursor and cuts long lines."""
_LEAST = 20
"""The width that the first column keeps, if need be at the cost of the last columns."""
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_TOP, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
_BOLD, _PLAIN = "\x1b[1m", "\x1b[m"
_KEYS_BYTES = 64


class Row(NamedTuple):
    """A row of the table."""

    cells: Sequence[str]
    needs_attention: bool = False
    """True if the row is drawn bold."""


class Table(NamedTuple):
    """A header with rows; the first column is the state, the second one the module."""

    header: Sequence[str]
    rows: Sequence[Row]

    def lines(self, width: int, most: int = sys.maxsize) -> Iterator[str]:
        """Yield the lines for a terminal of `width` characters, at most `most` of them.

        The state is cut to make room, and the last columns are left out.
        """
        every = [self.header, *(row.cells for row in self.rows)]
        widths = [max(map(len, column)) + 2 for column in zip(*every, strict=True)]
        while len(widths) > 2 and min(widths[0], _LEAST) + sum(widths[1:]) - 2 > width:
            widths.pop()
        widths[0] = min(widths[0], max(_LEAST, width - sum(widths[1:]) + 2))

        def line(cells: Sequence[str]) -> str:
            state = cells[0] if len(cells[0]) < widths[0] - 1 else cells[0][: widths[0] - 5] + "..."
            return "".join(map(str.ljust, (state, *cells[1:]), widths)).rstrip()

        yield line(self.header)
        fit = len(self.rows) if len(self.rows) < most else max(0, most - 2)
        for row in self.rows[:fit]:
            text = line(row.cells)
            yield f"{_BOLD}{text}{_PLAIN}" if row.needs_attention else text
        if fit < len(self.rows):
            yield f"and {len(self.rows) - fit:,} more"


def ago(moment: float) -> str:
    """Format the time since `moment` for a column; seconds since the epoch, 0 for never."""
    return short_span(max(0, int(time.time() - moment))) if moment else "-"


def show_live(title: str, table: Callable[[], Table]) -> None:
    """Draw the result of `table` every two seconds until `q` is pressed, or the terminal is closed.

    A `HuaiError` that it raises is shown instead: the configuration may be edited meanwhile.
    Raises `UsageError` without a terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--watch needs a terminal; without it the modules are shown once")
    with _screen():
        while True:
            size = shutil.get_terminal_size()
            lines = [f"{title}  {time.strftime('%H:%M:%S')}  (q quits)", ""]
            lines += _lines(table, size.columns, size.lines - len(lines))
            sys.stdout.write(_TOP + "\r\n".join(line + _REST_OF_LINE for line in lines))
            sys.stdout.write(_REST_OF_SCREEN)
            sys.stdout.flush()
            if _is_over():
                return


def print_table(table: Table) -> None:
    """Print a table on the terminal."""
    sys.stdout.writelines(f"{line}\n" for line in table.lines(shutil.get_terminal_size().columns))


def _lines(table: Callable[[], Table], width: int, room: int) -> Sequence[str]:
    try:
        return [*table().lines(width, room)]
    except HuaiError as error:
        return [f"{_BOLD}{error.message}{_PLAIN}", error.hint]


def _is_over() -> bool:
    """Wait for a key, at most two seconds; return True if it ends the view, or at end of file."""
    end = time.monotonic() + _SECONDS
    while (left := end - time.monotonic()) > 0:
        if not select.select([0], [], [], left)[0]:
            return False
        keys = os.read(0, _KEYS_BYTES)
        if not keys or any(key in _QUIT for key in keys):
            return True
    return False


@contextmanager
def _screen() -> Iterator[None]:
    """Use the alternate screen without echo in the block; restore both."""
    before = termios.tcgetattr(0)
    try:
        tty.setcbreak(0)
        sys.stdout.write(_ENTER)
        yield
    finally:
        # A second Ctrl-C must not interrupt restoring the terminal.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
