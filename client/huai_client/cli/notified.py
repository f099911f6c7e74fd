"""Notifies of failing syncs of a module, and of its expired signature: `[notify]` of client.toml.

Loaded only if there is such a table.
"""

import time
from pathlib import Path
from typing import Literal

from huai_client.cli.console import Console
from huai_client.config.mirror import Mirror
from huai_client.metadata.http import MetadataUrl
from huai_client.run.ages import why_expired
from huai_client.state import state as states
from huai_client.state.last_run import load
from huai_client.state.paths import ModulePlaces
from huai_program.notify.notification import Subject
from huai_program.notify.notifier import Notifier, this_host
from huai_program.notify.settings import Notify
from huai_schema.errors import ExitCode

Work = Literal["sync", "signature"]


def notifier_of(notify: Notify, mirror: Mirror, console: Console) -> Notifier:
    """Return the notifier for syncs of `mirror`; it prints its failures to `console`."""
    return _notifier(notify, mirror, console, "sync", mirror.paths.notified)


def count_signature(notify: Notify, mirror: Mirror, console: Console) -> None:
    """Count the signature of the applied commit as failed if it has expired; notify if due."""
    state, path = states.load(mirror.paths.state), mirror.paths.notified_signature
    over = "" if mirror.config.verify == "off" else why_expired(state.valid_until, time.time())
    notifier = _notifier(notify, mirror, console, "signature", path)
    notifier.run_unlocked(lambda: ExitCode.STALE if over else ExitCode.OK, lambda: over)


def _notifier(notify: Notify, mirror: Mirror, console: Console, work: Work, path: Path) -> Notifier:
    """Return the notifier of a mirror, whose own failures are printed as warnings."""
    name = mirror.name
    about = Subject(
        program="huai-client",
        host=this_host(),
        module=name,
        work=work,
        facts=(("tree", mirror.config.dest), ("upstream", str(MetadataUrl(mirror.config.urls[0])))),
        advice=f"`huai-client log {name}` and `huai-client doctor {name}` show more.",
    )

    def warn(reason: str) -> None:
        console.error(f"{name}: {reason}")
        console.event("warning", module=name, message=reason)

    return Notifier(notify, path, about, warn)


def last_failure(places: ModulePlaces) -> str:
    """Return why the last run failed; empty if it did not, or no run is recorded."""
    last = load(places.last)
    return last.reason if last else ""
