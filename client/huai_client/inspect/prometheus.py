"""The status of the modules as a file for node_exporter's textfile collector.

Written by hand: a line is a name, a label and a number, and Prometheus's client library would be
one more to install and to load with each sync.
"""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from huai_client.config.load import Module
from huai_client.run.ages import why_out_of_date
from huai_client.state import history
from huai_client.state import state as states
from huai_client.state.last_run import LastRun
from huai_client.state.last_run import load as load_last
from huai_client.state.paths import ModulePlaces, module_places
from huai_program.durable import replace_file
from huai_schema.errors import HuaiError

MEANINGS = {
    "last_success_timestamp_seconds": "When the tree was last in step with its upstream; 0: never.",
    "last_run_timestamp_seconds": "When the last run ended; 0: there was none.",
    "last_run_seconds": "How long the last run took.",
    "last_exit_code": "How the last run ended.",
    "received_bytes": "What the last run that changed something or failed received.",
    "serial": "Serial of the applied commit; 0: none.",
    "commit_timestamp_seconds": "When the applied commit was made; 0: none.",
    "bytes": "Bytes of all files of the applied commit.",
    "stale": "1: the applied commit is older than max_age, or its signature no longer holds.",
}
"""The help text of each metric, by its name without the prefix."""
_PREFIX = "huai_client_"


def write_prometheus(path: Path, root: Path, modules: Mapping[str, Module]) -> None:
    """Replace the file at `path`, from the state of each of `modules` in the state root `root`.

    Raises `StatusFileError` if it cannot be written.
    """
    values = {name: module_values(root, name, module) for name, module in sorted(modules.items())}
    replace_status_file(path, "".join(_lines(values)))


def module_values(root: Path, name: str, module: Module) -> dict[str, float]:
    """Return the metrics of a module by name; a state that cannot be read counts as none."""
    places = module_places(root, name)
    try:
        state = states.load(places.state)
    except HuaiError:  # every run reports it, and its exit code is a metric too
        state = states.State()
    return state_values(module, places, state, load_last(places.last))


def state_values(
    module: Module, places: ModulePlaces, state: states.State, last: LastRun | None
) -> dict[str, float]:
    """Return the metrics, by the names of `MEANINGS`, of a module with this state and last run.

    One more value, for pages only, is when the next run is expected; 0 if that is unknown.
    """
    run = history.last(places.history)
    first_seen = state.seen or state.time
    stale = why_out_of_date(module, time.time(), state.committed, first_seen, state.valid_until)
    return {
        "last_success_timestamp_seconds": last.in_step if last else 0,
        "last_run_timestamp_seconds": last.ended if last else 0,
        "last_run_seconds": max(0, last.ended - last.began) if last else 0,
        "last_exit_code": last.code if last else 0,
        "received_bytes": run.received if run else 0,
        "serial": state.applied_serial,
        "commit_timestamp_seconds": state.committed,
        "bytes": state.total_bytes,
        "stale": int(bool(stale)),
        "next_run_timestamp_seconds": last.began + last.gap if last and last.gap else 0,
    }


def _lines(modules: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield the metrics in Prometheus's text format."""
    for metric, meaning in MEANINGS.items():
        yield f"# HELP {_PREFIX}{metric} {meaning}\n# TYPE {_PREFIX}{metric} gauge\n"
        for name, values in modules.items():
            yield f'{_PREFIX}{metric}{{module="{name}"}} {values[metric]}\n'


_PERMISSIONS = 0o644
"""Readable for the user of a collector or web server."""


class StatusFileError(HuaiError):
    """The file cannot be written."""

    def __init__(self, path: Path, error: OSError) -> None:
        """Make an error from that of the file system."""
        super().__init__(
            f"{path} cannot be written: {error.strerror or error}",
            hint=f"create {path.parent}, or give this user the right to write there",
        )


def replace_status_file(path: Path, text: str) -> None:
    """Replace the file at `path` by `text` in one step, readable for all users; not durably.

    Raises `StatusFileError` and keeps the old one if that fails.
    """
    # A hidden name, which a collector or web server does not show.
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        replace_file(path, text.encode(), temporary, permissions=_PERMISSIONS, durable=False)
    except OSError as error:
        raise StatusFileError(path, error) from error
