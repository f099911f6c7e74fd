"""Shows the progress of a transfer: on a terminal, as plain or JSON lines, or not at all.

The listeners of `transfer`, and the choice between them.  Rule to keep: JSON events are an
interface, described in docs/JSON.md.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TextIO

from huai_client.cli.console import Console
from huai_client.staging import Arrival
from huai_client.transfer.listener import Listener
from huai_program.ending import json_line
from huai_program.humanize import counted, human, short_span
from huai_schema.entries import File
from huai_schema.paths import path_as_text

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

Clock = Callable[[], float]

_FILE_WORTH = 16_384
"""The bytes that arrive, roughly, in the time that one more file costs."""
_SILENCE = 5
"""Seconds without content after which a terminal shows how long nothing arrived."""
_PLAIN_INTERVAL = 30.0
_JSON_INTERVAL = 1.0


def choose_listener(console: Console, *, out: TextIO, err: TextIO) -> Listener:
    """Return the listener for a command: JSON goes to `out`, text for people to `err`."""
    if console.as_json:
        return JsonProgress(out, console.module, log=console.log)
    if console.quiet:
        return LoggedProgress(console.log)
    kind = TerminalProgress if err.isatty() else PlainProgress
    return kind(err, log=console.log)


def transfer_cost(files: int, size: int) -> int:
    """Return the cost of transferring `files` files with `size` bytes in all, in bytes."""
    return size + files * _FILE_WORTH


def time_left(elapsed: float, *, done: int, total: int) -> float | None:
    """Return the seconds until `total` is done, or None if nothing is done yet."""
    return elapsed * (total - done) / done if done > 0 else None


class LoggedProgress(Listener):
    """A listener that logs retries and waits; subclasses print them, equal ones as one."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._times: Counter[str] = Counter()

    def retried(self, reason: str) -> None:
        """Log the reason of a retry, and print it the first time, if this class prints."""
        self._report(f"trying again: {reason}")

    def waiting(self, reason: str) -> None:
        """Log the reason of a wait, and print it the first time, if this class prints."""
        self._report(f"waiting: {reason}")

    def ended(self) -> None:
        """Print the number of repeated messages, if this class prints."""
        for text, times in self._times.items():
            if times > 1:
                self._write(f"{text} ... and {times - 1:,} more like it")
        self._times.clear()

    def _report(self, text: str) -> None:
        """Log `text`, and print it the first time; `ended` prints the number of others."""
        self._log(text)
        self._times[text] += 1
        if self._times[text] == 1:
            self._write(text)

    def _write(self, text: str) -> None:
        """Print nothing."""


class PlainProgress(LoggedProgress):
    """A listener that prints a line every 30 seconds, and one for each problem."""

    def __init__(
        self,
        err: TextIO,
        *,
        log: Callable[[str], None] = lambda _: None,
        clock: Clock = time.monotonic,
        interval: float = _PLAIN_INTERVAL,
    ) -> None:
        """Write to `err`, and call `log` with retries and waits; `clock`, `interval` in seconds."""
        super().__init__(log)
        self._err = err
        self._clock = clock
        self._interval = interval
        self._file_count = self._size = self._arrived_files = self._arrived = 0
        self._begin = self._next = 0.0

    def started(self, files: int, size: int) -> None:
        """Print the number of files and bytes."""
        self._file_count, self._size, self._arrived_files, self._arrived = files, size, 0, 0
        self._begin = self._clock()
        self._next = self._begin + self._interval
        self._write(f"transferring {counted(files, 'file')}, {human(size)}")

    def progressed(self, size: int, files: int) -> None:
        """Note the sums so far, and print them if the interval is over."""
        self._arrived = size
        now = self._clock()
        if now < self._next:
            return
        self._next = now + self._interval
        rate = size / max(now - self._begin, 0.001)
        total = transfer_cost(self._file_count if files else 0, self._size)
        seconds = time_left(now - self._begin, done=transfer_cost(files, size), total=total)
        left = "" if seconds is None else f", {seconds:.0f} s left"
        self._write(
            f"{files:,}/{counted(self._file_count, 'file')}, "
            f"{human(size)} of {human(self._size)}, {human(rate)}/s{left}"
        )

    def finished(self, files: Sequence[File]) -> None:
        """Count the files; a line for each would be too much."""
        self._arrived_files += len(files)

    def ended(self) -> None:
        """Print the number of files and bytes that arrived."""
        super().ended()
        files = f"{self._arrived_files:,} of {counted(self._file_count, 'file')}"
        self._write(f"{files}, {human(self._arrived)} here")

    def _write(self, text: str) -> None:
        self._err.write(text + "\n")
        self._err.flush()


class TerminalProgress(LoggedProgress):
    """A listener that draws the phase, or a bar with files, bytes, rate and time left."""

    def __init__(self, err: TextIO, *, log: Callable[[str], None] = lambda _: None) -> None:
        """Draw on `err`, from `started` to `ended`."""
        super().__init__(log)
        self._err = err
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._file_count = self._arrived_files = 0
        self._rate = _Rate()

    def phase(self, name: str) -> AbstractContextManager[object]:
        """Return a context manager that draws a spinner."""
        from rich.console import Console

        return Console(file=self._err).status(name)

    def started(self, files: int, size: int) -> None:
        """Draw the bar."""
        from rich import progress
        from rich.console import Console

        self._file_count, self._arrived_files = files, 0
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.DownloadColumn(binary_units=True),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TimeRemainingColumn(),
            console=Console(file=self._err),
        )
        self._rate = _Rate()
        self._task = self._bar.add_task(self._title(), total=size, rate=self._rate)
        self._bar.start()

    def progressed(self, size: int, files: int) -> None:
        """Move the bar to the sums so far: `size` bytes, and `files` whole files."""
        self._arrived_files = files
        if self._bar and self._task is not None:
            self._rate.update(self._bar.tasks[self._task].speed)
            self._bar.update(self._task, completed=size, description=self._title())

    def ended(self) -> None:
        """Stop the bar, and leave it on the screen."""
        super().ended()
        if self._bar:
            self._bar.stop()
        self._bar = None

    def _title(self) -> str:
        return f"{self._arrived_files:,}/{counted(self._file_count, 'file')}"

    def _write(self, text: str) -> None:
        if self._bar:
            self._bar.console.print(text, markup=False, highlight=False)


class _Rate:
    """The rate of a transfer, or how long nothing arrived, as text that is always current."""

    def __init__(self) -> None:
        self.update(None)

    def update(self, speed: float | None) -> None:
        """Note that content arrived; `speed` in bytes a second."""
        self._moment = time.monotonic()
        # Not rich's own column, which counts in kB, while all other sizes are in KiB.
        self._text = f"{human(speed)}/s" if speed else ""

    def __str__(self) -> str:
        silence = int(time.monotonic() - self._moment)
        return self._text if silence < _SILENCE else f"nothing for {short_span(silence)}"


class JsonProgress(LoggedProgress):
    """A listener that prints JSON lines: `v`, `type`, `module` and the values of the type."""

    def __init__(
        self,
        out: TextIO,
        module: str,
        *,
        log: Callable[[str], None] = lambda _: None,
        clock: Clock = time.monotonic,
        interval: float = _JSON_INTERVAL,
    ) -> None:
        """Write lines of `module` to `out`, and call `log` with retries and waits.

        `clock` returns seconds, `interval` is in seconds.
        """
        super().__init__(log)
        self._out = out
        self._module = module
        self._clock = clock
        self._interval = interval
        self._next = 0.0

    def started(self, files: int, size: int) -> None:
        """Print `transfer-started`: files, bytes."""
        self._next = self._clock()
        self._print("transfer-started", files=files, bytes=size)

    def progressed(self, size: int, files: int) -> None:  # noqa: ARG002
        """Print `transfer-progress`: bytes so far; at most once a second."""
        now = self._clock()
        if now >= self._next:
            self._next = now + self._interval
            self._print("transfer-progress", bytes=size)

    def finished(self, files: Sequence[File]) -> None:
        """Print `file-arrived`: path, bytes."""
        for file in files:
            self._print("file-arrived", path=path_as_text(file.path), bytes=file.size)

    def refused(self, file: File, verdict: Arrival) -> None:
        """Print `file-missing` or `file-mismatch`: path, bytes."""
        self._print(f"file-{verdict.value}", path=path_as_text(file.path), bytes=file.size)

    def retried(self, reason: str) -> None:
        """Log the reason, and print `transfer-retried`: reason."""
        super().retried(reason)
        self._print("transfer-retried", reason=reason)

    def waiting(self, reason: str) -> None:
        """Log the reason, and print `transfer-waiting`: reason."""
        super().waiting(reason)
        self._print("transfer-waiting", reason=reason)

    def ended(self) -> None:
        """Print `transfer-ended`."""
        self._print("transfer-ended")

    def _print(self, kind: str, **fields: str | int) -> None:
        self._out.write(json_line(kind, module=self._module, **fields))
        self._out.flush()
