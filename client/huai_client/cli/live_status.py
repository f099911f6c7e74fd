"""What `huai-client status --watch` shows: the modules as a table."""

from collections.abc import Sequence
from pathlib import Path

from huai_client.config.load import Module, load
from huai_client.inspect.prometheus import module_values
from huai_client.inspect.status_page import state_of
from huai_client.state.paths import module_places
from huai_program.humanize import human
from huai_program.live_view import Row, Table, ago
from huai_program.locking import holder
from huai_program.words import ENGLISH, Words

_ENGLISH = Words(ENGLISH, {})
_HEADER = ("MODULE", "STATE", "SERIAL", "COMMITTED AGO", "LAST RUN AGO", "SIZE")
"""A narrow terminal cuts off what is last."""


def status_table(root: Path, names: Sequence[str]) -> Table:
    """The modules `names`, or all of client.toml as it is now; asks nobody."""
    config = load(root)
    chosen = names or sorted(config.modules)
    return Table(_HEADER, [_row(root, name, config.module(name)) for name in chosen])


def _row(root: Path, name: str, module: Module) -> Row:
    values = module_values(root, name, module)
    good, state = state_of(_ENGLISH, values)
    if since := values["last_success_timestamp_seconds"]:
        # What the upstream has now, only a sync finds out.
        seen = f"as of {ago(since)} ago"
        state = f"{state} {seen}" if good else f"{state}; in step {seen}"
    places = module_places(root, name)
    for lock, work in ((places.verifying, "being verified"), (places.lock, "running")):
        if process := holder(lock):
            state = f"{work} (process {process}); {state}"
    moments = ("commit", "last_run")
    cells = (
        name,
        state,
        f"{values['serial']:,.0f}" if values["serial"] else "-",
        *(ago(values[f"{each}_timestamp_seconds"]) for each in moments),
        human(values["bytes"]) if values["serial"] else "-",
    )
    return Row(cells, needs_attention=not good)
