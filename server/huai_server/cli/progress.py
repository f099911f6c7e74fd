"""The progress of a long command, on a terminal."""

from huai_native._native import progress_so_far
from huai_program.cli.progress_line import ProgressLine
from huai_program.humanize import counted, human
from huai_server.cli.console import Console


class Progress(ProgressLine):
    """A line with what this process has scanned and read; nothing with --quiet or --json."""

    def __init__(self, console: Console) -> None:
        """The line is shown by the context manager."""
        super().__init__(self._line, visible=not (console.quiet or console.as_json))
        self._shards = ""

    def shards(self, done: int, total: int) -> None:
        """Show how many shards are scanned; what engines' processes read is not counted."""
        self._shards = f"{done:,} of {counted(total, 'shard')}"

    def _line(self) -> str:
        files, size = progress_so_far()
        scanned = f"{counted(files, 'file')} scanned" if files else ""
        parts = (self._shards, scanned, f"{human(size)} read" if size else "")
        return ", ".join(part for part in parts if part) or "reading"
