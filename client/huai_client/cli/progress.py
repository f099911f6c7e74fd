"""Shows how a transfer goes: on a terminal, in a log, as JSON lines, or not at all.

The listeners of `transfer`, and the choice between them.  They write to the streams
they are given.  The rule to keep: JSON events are an interface, described in docs/JSON.md.
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from huai_client.cli.console import Console
from huai_client.cli.logfile import LoggedProgress
from huai_client.staging import Arrival
from huai_client.transfer.listener import Listener
from huai_program.ending import json_line
from huai_program.humanize import counted
from huai_schema.entries import File
from huai_schema.paths import exact

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
from huai_client.transfer.listener import SilentProgress
from huai_program.humanize import human

Clock = Callable[[], float]

_FILE_WORTH = 16_384
"""So many bytes arrive in the time that one more file costs, roughly."""
_PLAIN_INTERVAL = 30.0
_JSON_INTERVAL = 1.0


def choose(console: Console, *, out: TextIO, err: TextIO) -> Listener:
    """The listener for a command: JSON goes to `out`, what is for people to `err`."""
    shown = _shown(console, out, err)
    return LoggedProgress(shown, console.log) if console.log_file else shown


def _shown(console: Console, out: TextIO, err: TextIO) -> Listener:
    if console.as_json:
        return JsonProgress(out, console.module)
    if console.quiet:
        return SilentProgress()
    return TerminalProgress(err) if err.isatty() else PlainProgress(err)


def work(files: int, size: int) -> int:
    """The cost of `files` with `size` bytes in all, in bytes: each file adds to it."""
    return size + files * _FILE_WORTH


def time_left(elapsed: float, *, done: int, whole: int) -> float | None:
    """Seconds until all of the `work` is done; None: not known yet."""
    return elapsed * (whole - done) / done if done > 0 else None


class PlainProgress:
    """A line every 30 seconds, and one for each thing that went wrong."""

    def __init__(
        self, err: TextIO, *, clock: Clock = time.monotonic, interval: float = _PLAIN_INTERVAL
    ) -> None:
        """Writes to `err`; `clock` gives seconds."""
        self._err = err
        self._clock = clock
        self._interval = interval
        self._files = self._size = self._files_here = self._here = 0
        self._begin = self._next = 0.0

    def started(self, files: int, size: int) -> None:
        """Say what is to come."""
        self._files, self._size, self._files_here, self._here = files, size, 0, 0
        self._begin = self._clock()
        self._next = self._begin + self._interval
        self._say(f"transferring {counted(files, 'file')}, {human(size)}")

    def progressed(self, size: int, files: int) -> None:
        """Say where we are, if it is time to."""
        self._here = size
        now = self._clock()
        if now < self._next:
            return
        self._next = now + self._interval
        rate = size / max(now - self._begin, 0.001)
        whole = work(self._files if files else 0, self._size)
        done = work(files, size)
        seconds = time_left(now - self._begin, done=done, whole=whole)
        left = "" if seconds is None else f", {seconds:.0f} s left"
        self._say(
            f"{files:,}/{counted(self._files, 'file')}, "
            f"{human(size)} of {human(self._size)}, {human(rate)}/s{left}"
        )

    def finished(self, files: Sequence[File]) -> None:
        """Count them: one line a file would be too many."""
        self._files_here += len(files)

    def refused(self, file: File, verdict: Arrival) -> None:
        """Nothing yet: the end of the run tells, and the reason with it."""

    def retried(self, reason: str) -> None:
        """Say why."""
        self._say(f"trying again: {reason}")

    def waiting(self, reason: str) -> None:
        """Say why."""
        self._say(f"waiting: {reason}")

    def ended(self) -> None:
        """Say how far it came."""
        self._say(
            f"{self._files_here:,} of {counted(self._files, 'file')}, {human(self._here)} here"
        )

    def _say(self, text: str) -> None:
        self._err.write(text + "\n")
        self._err.flush()


class TerminalProgress:
    """A bar with files, bytes, rate and time left."""

    def __init__(self, err: TextIO) -> None:
        """Draws on `err`, from `started` to `ended`."""
        self._err = err
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._files = self._files_here = 0

    def started(self, files: int, size: int) -> None:
        """Draw the bar."""
        from rich import progress
        from rich.console import Console

        self._files, self._files_here = files, 0
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.DownloadColumn(binary_units=True),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TimeRemainingColumn(),
            console=Console(file=self._err),
        )
        self._task = self._bar.add_task(self._title(), total=size, rate="")
        self._bar.start()

    def progressed(self, size: int, files: int) -> None:
        """Move the bar."""
        self._files_here = files
        if self._bar and self._task is not None:
            speed = self._bar.tasks[self._task].speed
            # Not rich's own column, which counts in kB beside the KiB of all else.
            rate = f"{human(speed)}/s" if speed else ""
            title = self._title()
            self._bar.update(self._task, completed=size, rate=rate, description=title)

    def finished(self, files: Sequence[File]) -> None:
        """Nothing: they were counted when they arrived."""

    def refused(self, file: File, verdict: Arrival) -> None:
        """Nothing yet: the end of the run tells, and the reason with it."""

    def retried(self, reason: str) -> None:
        """Say why above the bar."""
        self._say(f"trying again: {reason}")

    def waiting(self, reason: str) -> None:
        """Say why above the bar."""
        self._say(f"waiting: {reason}")

    def ended(self) -> None:
        """Leave the bar as it stands."""
        if self._bar:
            self._bar.stop()
        self._bar = None

    def _title(self) -> str:
        return f"{self._files_here:,}/{counted(self._files, 'file')}"

    def _say(self, text: str) -> None:
        if self._bar:
            self._bar.console.print(text, markup=False, highlight=False)


class JsonProgress:
    """One JSON object a line: `v`, `type`, `module` and what belongs to the type."""

    def __init__(
        self,
        out: TextIO,
        module: str,
        *,
        clock: Clock = time.monotonic,
        interval: float = _JSON_INTERVAL,
    ) -> None:
        """Writes to `out`; `clock` gives seconds."""
        self._out = out
        self._module = module
        self._clock = clock
        self._interval = interval
        self._next = 0.0

    def started(self, files: int, size: int) -> None:
        """`transfer-started`: files, bytes."""
        self._next = self._clock()
        self._say("transfer-started", files=files, bytes=size)

    def progressed(self, size: int, files: int) -> None:  # noqa: ARG002
        """`transfer-progress`: bytes; at most once a second."""
        now = self._clock()
        if now >= self._next:
            self._next = now + self._interval
            self._say("transfer-progress", bytes=size)

    def finished(self, files: Sequence[File]) -> None:
        """`file-arrived`: path, bytes."""
        for file in files:
            self._say("file-arrived", path=exact(file.path), bytes=file.size)

    def refused(self, file: File, verdict: Arrival) -> None:
        """`file-missing` or `file-mismatch`: path, bytes."""
        self._say(f"file-{verdict.value}", path=exact(file.path), bytes=file.size)

    def retried(self, reason: str) -> None:
        """`transfer-retried`: reason."""
        self._say("transfer-retried", reason=reason)

    def waiting(self, reason: str) -> None:
        """`transfer-waiting`: reason."""
        self._say("transfer-waiting", reason=reason)

    def ended(self) -> None:
        """`transfer-ended`."""
        self._say("transfer-ended")

    def _say(self, kind: str, **fields: str | int) -> None:
        self._out.write(json_line(kind, module=self._module, **fields))
        self._out.flush()
