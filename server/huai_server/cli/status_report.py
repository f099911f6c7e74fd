"""The text and the JSON fields in which `huai-server status` shows a module."""

from typing import TYPE_CHECKING

from huai_program.humanize import counted, moment
from huai_server.cli.report import totals_values
from huai_server.config.tables import Module

if TYPE_CHECKING:  # loaded by the code that reads the state
    from huai_schema.codec.pending import PendingCommit
    from huai_server.store.module_state import ModuleState
    from huai_server.watch.record import Watched


def status_values(name: str, module: Module, state: "ModuleState") -> dict[str, object]:
    """Return the state of a module, for JSON."""
    head = state.head
    return {
        "module": name,
        "path": module.path,
        "commit": head.commit if head else None,
        "serial": head.info.serial if head else None,
        "time": head.time if head else None,
        "totals": totals_values(head.info) if head else None,
        "pending": state.pending.info.serial if state.pending else None,
        "pending_since": state.pending.time if state.pending else None,
        "problem": state.problem.message if state.problem else None,
        "running": state.running,
    }


def status_line(name: str, module: Module, state: "ModuleState") -> str:
    """Return the state of a module, as a line."""
    waiting = f", {pending_text(state.pending)}" if state.pending else ""
    busy = f", commit running (process {state.running})" if state.running else ""
    return f"{name}: {module.path}: {_committed(state)}{waiting}{busy}"


def pending_text(pending: "PendingCommit") -> str:
    """Describe a commit that waits for signatures."""
    return f"serial {pending.info.serial} waits for signatures since {moment(pending.time)}"


def watched_values(watched: "Watched | None") -> dict[str, object]:
    """Return the watching process of a module, and since when it is behind, for JSON."""
    return {
        "watching": watched.process if watched else None,
        "behind_since": watched.record.since if watched else None,
        "unwatched": watched.record.unwatched if watched else None,
    }


def watched_text(watched: "Watched | None") -> str:
    """Return the same as the end of a line."""
    if watched is None:
        return ""
    since = watched.record.since
    behind = f", with changes since {moment(since)} to commit" if since else ", in step"
    return f", watched (process {watched.process}){behind}"


def _committed(state: "ModuleState") -> str:
    if state.problem:
        return state.problem.message
    if state.head is None:
        return "no commit yet"
    info = state.head.info
    when = moment(state.head.time)
    totals = (
        f"{counted(info.totals.entries, 'entry', 'entries')}, {counted(info.totals.bytes, 'byte')}"
    )
    return f"serial {info.serial}, committed {when}, {totals}"
