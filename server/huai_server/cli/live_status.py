"""The table of modules that `huai-server status` prints on a terminal."""

from collections.abc import Sequence
from pathlib import Path

from huai_program.humanize import counted, human
from huai_program.live_view import Row, Table, ago
from huai_server.cli.status_report import pending_text, read_scrubs
from huai_server.config.load import load
from huai_server.state.paths import module_places
from huai_server.store.module_state import ModuleState, module_state
from huai_server.watch.record import Watched, read_watched

HEADER = ("STATE", "MODULE", "SERIAL", "COMMITTED AGO", "ENTRIES", "SIZE", "LAST CHANGE")
"""The columns, the most important first: a narrow terminal cuts off the last."""


def status_table(root: Path, names: Sequence[str]) -> Table:
    """Return the table of the modules `names`, or of all; reads server.toml again.

    Raises `UnknownModuleError` if one is not configured.
    """
    config = load(root)
    for name in names:
        config.module(name)
    rows: list[Row] = []
    for name in names or sorted(config.modules):
        places = module_places(root, name)
        damage = read_scrubs(places).damage
        rows.append(status_row(name, module_state(places), read_watched(places), len(damage)))
    return Table(HEADER, rows)


def status_row(name: str, state: ModuleState, watched: Watched | None, damaged: int) -> Row:
    """Return the row of a module with `damaged` files.

    It needs attention if there is a problem, damage or a pending commit.
    """
    words = _words(state, watched, damaged)
    attention = bool(state.problem or damaged or state.pending)
    if state.head is None:
        return Row((words, name, "-", "-", "-", "-", "-"), attention)
    totals, counts = state.head.info.totals, state.head.info.counts
    cells = (
        words,
        name,
        f"{state.head.info.serial:,}",
        ago(state.head.time),
        f"{totals.entries:,}",
        human(totals.bytes),
        f"+{counts.added:,} -{counts.removed:,} ~{counts.changed:,}",
    )
    return Row(cells, attention)


def _words(state: ModuleState, watched: Watched | None, damaged: int) -> str:
    """Describe the state of a module: problem, damage, signatures, runs; the worst comes first."""
    states = [state.problem.message] if state.problem else []
    states += [f"{counted(damaged, 'file')} DAMAGED"] if damaged else []
    states += [pending_text(state.pending)] if state.pending else []
    states += [f"commit running (process {state.running})"] if state.running else []
    if watched:
        since = watched.record.since
        states.append(f"watched, behind for {ago(since)}" if since else "watched, in step")
    if state.head is None and not state.problem:
        states.append("no commit yet")
    return ", ".join(states) or "committed"
