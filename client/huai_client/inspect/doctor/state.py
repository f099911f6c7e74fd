"""What is kept here of a module: lock, state, history and repository."""

import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from huai_client.config.mirror import Mirror
from huai_client.diff.remains import check_destination
from huai_client.inspect.doctor.finding import Finding, fail, ok, skipped, warn
from huai_client.metadata.repository import Repository
from huai_client.plan.build import applied_selection
from huai_client.state import delayed_record, handovers
from huai_client.state import history as runs
from huai_client.state import state as states
from huai_client.state.last_run import interruption
from huai_client.state.last_run import load as load_last
from huai_client.state.state import HELD
from huai_client.tree import View
from huai_program.humanize import counted, format_span, moment
from huai_program.locking import holder
from huai_schema.errors import ExitCode

_LONG = 86_400
_DIRECTORIES = 100_000
_AGAIN = 3
_LOCKS = Path("/proc/locks")


def lock(mirror: Mirror) -> Iterator[Finding]:
    """The lock is free, or was taken less than a day ago."""
    place = mirror.paths.lock
    if not place.exists() and not place.is_symlink():
        yield ok("free; there was no run yet")
        return
    if place.is_symlink() or not place.is_file():
        yield fail(f"{place} is not a file", f"remove it: rm -r {place}", ExitCode.FILE_IO)
        return
    if not _held(place):
        yield ok("free")
        return
    since = time.time() - place.stat().st_mtime
    text = f"held by process {holder(place) or 'unknown'} for {format_span(max(0.0, since))}"
    if since > _LONG:
        yield warn(text, "look at what that process does; end it if it hangs")
    else:
        yield ok(text)


def _held(place: Path) -> bool:
    """Whether a process holds the lock, by /proc/locks (proc(5)): no run has to wait for this."""
    status = place.stat()
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    return any(device in line.split() for line in _LOCKS.read_text().splitlines())


def state(mirror: Mirror) -> Iterator[Finding]:
    """The state can be read, and no run was interrupted."""
    delayed = len(delayed_record.load(mirror.paths.delayed))
    found = states.load(mirror.paths.state)
    if found.attempted:
        text = interruption(mirror.paths.history, load_last(mirror.paths.last))
        yield warn(text, f"nothing: huai-client sync {mirror.name} goes on from there")
    elif found.held:
        yield warn(HELD, f"huai-client sync {mirror.name} --unhold, when the upstream is repaired")
    elif found.applied is None:
        yield ok("never synced to its end")
    else:
        text = f"serial {found.serial}, synced {moment(found.time)}"
        yield ok(
            text
            + (f", {counted(delayed, 'delayed deletion', 'delayed deletions')}" if delayed else "")
        )


def history(mirror: Mirror) -> Iterator[Finding]:
    """The last run ended well, and `huai-rsync` leaves no calls to the real rsync."""
    if calls := handovers.load(mirror.paths.handovers):
        fix = "give the module the filter of the call in client.toml, as HUAI-RSYNC.md says"
        yield warn(str(calls), fix)
    last = next((run for run in runs.read(mirror.paths.history) if run.kind != "verify"), None)
    if last is None:
        yield skipped("no run is known")
    elif not last.ended:
        text = f"the run of {moment(last.time)} did not come to its end"
        if mirror.paths.lock.is_file() and _held(mirror.paths.lock):
            yield ok("a run is on")
        else:
            yield warn(text, f"nothing: huai-client sync {mirror.name} finishes it")
    elif last.succeeded:
        yield ok(f"the last run that did anything ended well, {moment(last.until)}")
    else:
        text = f"{last.times:,} runs failed since {moment(last.time)}: {last.reason}"
        fix = f"huai-client sync {mirror.name}; huai-client log {mirror.name} tells more"
        again = last.times >= _AGAIN
        code = next((code for code in ExitCode if code == last.code), ExitCode.FILE_IO)
        yield fail(text, fix, code) if again else warn(text, fix)


def repository(mirror: Mirror) -> Iterator[Finding]:
    """The objects of the applied commit can be read."""
    applied, place = states.load(mirror.paths.state).applied, mirror.paths.repository
    if applied is None:
        yield skipped("nothing was applied yet")
        return
    fix = f"nothing: huai-client sync {mirror.name} fetches it anew and compares the whole tree"
    if not place.exists():
        yield warn(f"{place} is missing", fix)
        return
    found = Repository(place, make=False)
    if not found.has(applied):
        yield warn(f"the applied commit {applied[:12]} is not in {place}", fix)
        return
    listings = found.commit(applied).snapshot.listings()
    count = sum(1 for _ in islice(listings, _DIRECTORIES))
    which = "the first" if count == _DIRECTORIES else "all"
    yield ok(f"{which} {count:,} directories of the applied commit can be read")


def tree(mirror: Mirror) -> Iterator[Finding]:
    """DEST holds what was synced there: its disk is mounted."""
    recorded = states.load(mirror.paths.state)
    applied, place = recorded.applied, mirror.paths.repository
    if applied is None or not place.exists():
        yield skipped("nothing was applied yet")
        return
    found = Repository(place, make=False)
    if not found.has(applied):
        yield skipped("the applied commit is not here")
        return
    with View(mirror.dest) as view:
        check_destination(view, [applied_selection(found.commit(applied), recorded)])
    yield ok(f"{mirror.dest} holds what was synced")
