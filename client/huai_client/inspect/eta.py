"""How long a sync may take, by what the runs before it took.

Pure.  Rule: of the last runs that fetched content and ended well, the rates by bytes and by
files; the slower of both counts.  Without such a run nothing is known, and no number is made up.
"""

from collections.abc import Iterable
from itertools import islice

from huai_client.state.run_record import Record

_RUNS = 10


def seconds_needed(runs: Iterable[Record], files: int, size: int) -> float | None:
    """For so many files and bytes to fetch; `runs` newest first; None: unknown."""
    measured = [
        run
        for run in islice(runs, 10 * _RUNS)
        if run.kind == "sync" and run.good and run.seconds > 0 and run.fetched
    ][:_RUNS]
    if not measured:
        return None
    spent = sum(run.seconds for run in measured)
    by_files = files * spent / sum(run.fetched for run in measured)
    received = sum(run.received for run in measured)
    return max(by_files, size * spent / received) if received else by_files
