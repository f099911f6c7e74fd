"""What the user of `huai-server` is shown; nothing here decides anything."""

from typing import TYPE_CHECKING

from huai_schema.commits import CommitInfo
from huai_server.config import Module

if TYPE_CHECKING:
    from huai_server.status import ModuleState  # loads libgit2, which only some commands need


def totals_values(info: CommitInfo) -> dict[str, int]:
    """Totals for JSON."""
    return {**info.totals._asdict(), "entries": info.totals.entries}


def commit_line(name: str, info: CommitInfo, seconds: float, *, changed: bool) -> str:
    """What a commit did."""
    entries = f"{info.totals.entries:,} entries"
    if not changed:
        return f"{name}: nothing changed, still serial {info.serial} ({entries}, {seconds:.1f} s)"
    counts = info.counts
    moved = f", {counts.moved:,} moved along" if counts.moved else ""
    return (
        f"{name}: serial {info.serial}: {counts.added:,} added, {counts.changed:,} changed, "
        f"{counts.removed:,} removed{moved} ({entries}, {seconds:.1f} s)"
    )


def status_values(name: str, module: Module, state: "ModuleState") -> dict[str, object]:
    """What is committed of a module, for JSON."""
    head = state.head
    return {
        "module": name,
        "path": module.path,
        "commit": head.commit if head else None,
        "serial": head.info.serial if head else None,
        "time": head.time if head else None,
        "totals": totals_values(head.info) if head else None,
        "problem": state.problem.message if state.problem else None,
        "running": state.running,
    }


def status_line(name: str, module: Module, state: "ModuleState") -> str:
    """What is committed of a module."""
    busy = f", commit running (process {state.running})" if state.running else ""
    return f"{name}: {module.path}: {_committed(state)}{busy}"


def _committed(state: "ModuleState") -> str:
    if state.problem:
        return state.problem.message
    if state.head is None:
        return "no commit yet"
    info = state.head.info
    return f"serial {info.serial}, {info.totals.entries:,} entries, {info.totals.bytes:,} bytes"
