"""A table on a terminal: printed once, or redrawn every two seconds until the user ends it.

Knows no module and no state: the caller supplies the rows.  Rule: however it ends, the terminal is
restored.
"""

import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from click import UsageError
from rich.console import Console, Group
from rich.table import Table as Columns
from rich.text import Text

from huai_program.humanize import short_span
from huai_schema.errors import HuaiError

_SECONDS = 2.0
_QUIT = b"qQ\x04"
"""The keys that end the view: q and Ctrl-D."""
_LEAST = 20
"""The width that the first column keeps, if need be at the cost of the last columns."""
_KEYS_BYTES = 64
_UNLIMITED = 1 << 16
"""A width in which each table has room."""


class Row(NamedTuple):
    """A row of the table."""

    cells: Sequence[str]
    needs_attention: bool = False
    """True if the row is drawn bold."""


class Table(NamedTuple):
    """A header with rows; the first column is the state, the second one the module."""

    header: Sequence[str]
    rows: Sequence[Row]

    def columns(self, console: Console, most: int = sys.maxsize) -> Group:
        """Return what to print, at most `most` lines.

        Where the console is too narrow, the state is cut, and the last columns are left out.
        """
        columns = Columns(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
        columns.add_column(self.header[0], no_wrap=True, overflow="ellipsis", max_width=_LEAST)
        for label in self.header[1:]:
            columns.add_column(label, no_wrap=True)
        fit = len(self.rows) if len(self.rows) < most else max(0, most - 2)
        for row in self.rows[:fit]:
            columns.add_row(*row.cells, style="bold" if row.needs_attention else "")
        unlimited = console.options.update(width=_UNLIMITED)
        while (room := console.width - console.measure(columns, options=unlimited).maximum) < 0:
            if len(columns.columns) == 2:
                break
            columns.columns.pop()
        columns.columns[0] = replace(columns.columns[0], max_width=_LEAST + max(0, room))
        more = len(self.rows) - fit
        return Group(columns, *([f"and {more:,} more"] if more else []))


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
    with _screen() as console:
        while True:
            heading = f"{title}  {time.strftime('%H:%M:%S')}  (q quits)\n"
            console.update_screen(Group(heading, _content(table, console)))
            if _is_over():
                return


def print_table(table: Table) -> None:
    """Print a table on the terminal."""
    console = _console()
    console.print(table.columns(console))


def _console() -> Console:
    return Console(markup=False, emoji=False, highlight=False)


def _content(table: Callable[[], Table], console: Console) -> Group:
    """Return the columns of the table, or the text of the `HuaiError` that `table` raises."""
    try:
        return table().columns(console, console.height - 2)
    except HuaiError as error:
        return Group(Text(error.message, style="bold"), error.hint)


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
def _screen() -> Iterator[Console]:
    """Yield the alternate screen, without echo; restore both."""
    console, before = _console(), termios.tcgetattr(0)
    try:
        tty.setcbreak(0)
        console.set_alt_screen()
        console.show_cursor(show=False)
        yield console
    finally:
        # A second Ctrl-C must not interrupt restoring the terminal.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        console.set_alt_screen(enable=False)
        console.show_cursor()
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
