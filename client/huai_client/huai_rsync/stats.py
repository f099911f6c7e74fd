"""The statistics of a run, in the lines at the end of rsync's output.

Pure.  tunasync reads `Total file size`, other scripts the last two lines.  Figures that huai does
not count, such as bytes sent, are 0.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from huai_client.cli.numbers import format_number
from huai_client.huai_rsync.request import OutputStyle
from huai_schema.entries import Directory, Entry, File, Symlink

_LEAST_SECONDS = 0.5
"""The seconds that rsync adds to the elapsed time before it divides by it."""


class Kinds(NamedTuple):
    """Numbers of entries by kind."""

    files: int = 0
    directories: int = 0
    symlinks: int = 0

    @classmethod
    def of(cls, entries: Iterable[Entry | None]) -> Self:
        """Count `entries`, without None."""
        count = Counter(map(type, entries))
        return cls(count[File], count[Directory], count[Symlink])

    def text(self, human: int) -> str:
        """Return the text of rsync for these numbers."""
        parts = zip(("reg", "dir", "link"), self, strict=True)
        kinds = ", ".join(
            f"{name}: {format_number(count, human)}" for name, count in parts if count
        )
        return format_number(sum(self), human) + (f" ({kinds})" if kinds else "")


_NONE: Final = Kinds()


@dataclass(slots=True)
class Stats:
    """The statistics, which are filled in during a run."""

    total: int | None = None
    """The bytes of all files; None if unknown, so that no statistics are printed."""
    entries: Kinds | None = None
    """The numbers of all entries; None if unknown."""
    created: Kinds = _NONE
    deleted: Kinds = _NONE
    transferred: int = 0
    """The number of transferred files."""
    transferred_bytes: int = 0
    received: int = 0
    """The bytes received."""

    def lines(self, style: OutputStyle, *, seconds: float, dry_run: bool) -> Iterator[str]:
        """Yield the last lines of rsync's output, if --stats or -v is given.

        `seconds`: the duration of the run.  Nothing if the size of all files is unknown.
        """
        if self.total is None or not (style.stats or style.totals):
            return
        if style.stats:
            yield ""
            yield from self._block(self.total, style.human)
        human = style.human
        rate = self.received / (_LEAST_SECONDS + seconds)
        speedup = self.total / max(1, self.received)
        yield ""
        yield (
            f"sent 0 bytes  received {format_number(self.received, human)} bytes  "
            f"{format_number(rate, human, decimals=2)} bytes/sec"
        )
        yield (
            f"total size is {format_number(self.total, human)}  "
            f"speedup is {format_number(speedup, min(human, 1), decimals=2)}"
            + (" (DRY RUN)" if dry_run else "")
        )

    def log_lines(self, style: OutputStyle, *, seconds: float, dry_run: bool) -> Iterator[str]:
        """Yield the lines for `--log-file`, at least one; none without the size of all files."""
        if self.total is None:
            return
        if style.stats or style.totals:
            yield from filter(None, self.lines(style, seconds=seconds, dry_run=dry_run))
        else:
            yield f"sent 0 bytes  received {self.received} bytes  total size {self.total}"

    def _block(self, total: int, human: int) -> Iterator[str]:
        """Yield the lines of --stats; `total`: bytes of the tree, `human`: rsync's level."""
        if self.entries is not None:
            yield f"Number of files: {self.entries.text(human)}"
        yield f"Number of created files: {self.created.text(human)}"
        yield f"Number of deleted files: {self.deleted.text(human)}"
        yield f"Number of regular files transferred: {format_number(self.transferred, human)}"
        yield f"Total file size: {format_number(total, human)} bytes"
        yield f"Total transferred file size: {format_number(self.transferred_bytes, human)} bytes"
        literal = min(self.received, self.transferred_bytes)
        yield f"Literal data: {format_number(literal, human)} bytes"
        yield f"Matched data: {format_number(self.transferred_bytes - literal, human)} bytes"
        yield "File list size: 0"
        yield "File list generation time: 0.000 seconds"
        yield "File list transfer time: 0.000 seconds"
        yield "Total bytes sent: 0"
        yield f"Total bytes received: {format_number(self.received, human)}"
