"""The last run of each kind of work on a module: `ROOT/modules/NAME/run-WORK`, a file for each.

Only the last run is kept, and a cut error, so the size is bounded.  The file is not synced to the
disk, and a run does not fail if it cannot be written.
"""

from contextlib import suppress
from typing import NamedTuple

from huai_program.record_file import RecordFile
from huai_server.state.paths import ModulePlaces

_ERROR_LENGTH = 300
_PREFIX = "run-"


class Run(NamedTuple):
    """A run that ended."""

    begun: int
    """Seconds since the epoch."""
    seconds: float
    exit_code: int
    error: str = ""
    """The last line of the error; empty after success."""


_FILE = RecordFile(Run, needed=False, durable=False, permissions=0o644)


def save_run(places: ModulePlaces, work: str, run: Run) -> None:
    """Record a run of `work`, the name of a command; does nothing where that cannot be written."""
    error = (run.error.splitlines() or [""])[-1][:_ERROR_LENGTH]
    with suppress(OSError):
        _FILE.save(places.folder / f"{_PREFIX}{work}", run._replace(error=error))


def read_runs(places: ModulePlaces) -> dict[str, Run]:
    """Return the last run of each kind of work by its name; unreadable files are left out."""
    files = {path.name.removeprefix(_PREFIX): path for path in places.folder.glob(f"{_PREFIX}*")}
    runs = {work: _FILE.load(path) for work, path in sorted(files.items()) if "." not in work}
    return {work: run for work, run in runs.items() if run is not None}
