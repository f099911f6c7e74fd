"""The table of modules that `huai-client status --watch` shows."""

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
"""The columns, the most important first, because a narrow terminal cuts off the last."""


def status_table(root: Path, names: Sequence[str]) -> Table:
    """Return the modules `names`, or all of the present client.toml, without asking upstreams."""
    config = load(root)
    chosen = names or sorted(config.modules)
    return Table(_HEADER, [_row(root, name, config.module(name)) for name in chosen])


def _row(root: Path, name: str, module: Module) -> Row:
    values = module_values(root, name, module)
    good, state = state_of(_ENGLISH, values)
    if since := values["last_success_timestamp_seconds"]:
        # Only a sync finds out what the upstream has now.
        as_of = f"as of {ago(since)} ago"
        state = f"{state} {as_of}" if good else f"{state}; in step {as_of}"
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
