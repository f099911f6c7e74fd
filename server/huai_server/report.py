"""What the user of `huai-server` is shown; nothing here decides anything."""

from huai_schema.commits import CommitInfo
from huai_server.config import Module


def totals_values(info: CommitInfo) -> dict[str, int]:
    """Totals for JSON."""
    return {**info.totals._asdict(), "entries": info.totals.entries}


def commit_line(name: str, info: CommitInfo, seconds: float, *, changed: bool) -> str:
    """What a commit did."""
    entries = f"{info.totals.entries:,} entries"
    if not changed:
        return f"{name}: nothing changed, still serial {info.serial} ({entries}, {seconds:.1f} s)"
    counts = info.counts
    moved = f", {counts.moved} directories moved" if counts.moved else ""
    return (
        f"{name}: serial {info.serial}: {counts.added:,} added, {counts.changed:,} changed, "
        f"{counts.removed:,} removed{moved} ({entries}, {seconds:.1f} s)"
    )


def status_line(name: str, module: Module, info: CommitInfo | None, running: int | None) -> str:
    """What is committed of a module."""
    state = (
        f"serial {info.serial}, {info.totals.entries:,} entries, {info.totals.bytes:,} bytes"
        if info
        else "no commit yet"
    )
    busy = f", commit running (process {running})" if running else ""
    return f"{name}: {module.path}: {state}{busy}"
