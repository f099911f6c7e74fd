"""Checks of client.toml and of a module's files: lock, state, history and repository."""

import os
import time
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

from huai_client.config.load import ClientConfig, load
from huai_client.config.mirror import Mirror
from huai_client.diff.active_filter import rules_of
from huai_client.diff.remains import check_destination
from huai_client.inspect.config_check import check_config
from huai_client.inspect.doctor.finding import Finding, fail, ok, skipped, warn
from huai_client.metadata.repository import Repository
from huai_client.plan.build import applied_selection
from huai_client.run.options import SyncOptions
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
    """Check that the lock is free; warn if a process has held it for more than a day."""
    path = mirror.paths.lock
    if not path.exists() and not path.is_symlink():
        yield ok("free; no run yet")
        return
    if path.is_symlink() or not path.is_file():
        yield fail(f"{path} is not a file", f"remove it: rm -r {path}", ExitCode.FILE_IO)
        return
    if not _is_locked(path):
        yield ok("free")
        return
    since = time.time() - path.stat().st_mtime
    text = f"held by process {holder(path) or 'unknown'} for {format_span(max(0.0, since))}"
    if since > _LONG:
        yield warn(text, "check what that process does; end it if it hangs")
    else:
        yield ok(text)


def _is_locked(path: Path) -> bool:
    """Return True if a process holds the lock.

    Reads /proc/locks (proc(5)), as locking the file for a moment could stop a run.
    """
    status = path.stat()
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    return any(device in line.split() for line in _LOCKS.read_text().splitlines())


def state(mirror: Mirror) -> Iterator[Finding]:
    """Check that the state can be read; warn of an interrupted run, or a tree held by an undo."""
    delayed = len(delayed_record.load(mirror.paths.delayed))
    recorded = states.load(mirror.paths.state)
    if recorded.attempted:
        text = interruption(mirror.paths.history, load_last(mirror.paths.last))
        yield warn(text, f"nothing: huai-client sync {mirror.name} continues from there")
    elif recorded.held:
        yield warn(HELD, f"huai-client sync {mirror.name} --unhold, when the upstream is repaired")
    elif recorded.applied is None:
        yield ok("never synced to its end")
    else:
        text = f"serial {recorded.serial}, synced {moment(recorded.time)}"
        yield ok(
            text
            + (f", {counted(delayed, 'delayed deletion', 'delayed deletions')}" if delayed else "")
        )


def history(mirror: Mirror) -> Iterator[Finding]:
    """Warn of a failed or cut last run, and of calls of `huai-rsync` left to the real rsync.

    Three equal failures in a row are a failure.
    """
    if calls := handovers.load(mirror.paths.handovers):
        fix = "give the module the filter of the call in client.toml, as HUAI-RSYNC.md says"
        yield warn(str(calls), fix)
    last = next((run for run in runs.read(mirror.paths.history) if run.kind != "verify"), None)
    if last is None:
        yield skipped("no run is recorded")
    elif not last.ended:
        text = f"the run of {moment(last.time)} was interrupted"
        if mirror.paths.lock.is_file() and _is_locked(mirror.paths.lock):
            yield ok("a run is in progress")
        else:
            yield warn(text, f"nothing: huai-client sync {mirror.name} finishes it")
    elif last.succeeded:
        yield ok(f"the last run with changes ended well, {moment(last.until)}")
    else:
        text = f"{last.times:,} runs failed since {moment(last.time)}: {last.reason}"
        fix = f"huai-client sync {mirror.name}; huai-client log {mirror.name} shows more"
        again = last.times >= _AGAIN
        code = next((code for code in ExitCode if code == last.code), ExitCode.FILE_IO)
        yield fail(text, fix, code) if again else warn(text, fix)


def repository(mirror: Mirror) -> Iterator[Finding]:
    """Check that the applied commit can be read, at most 100,000 directories; warn without it."""
    applied, path = states.load(mirror.paths.state).applied, mirror.paths.repository
    if applied is None:
        yield skipped("nothing was applied yet")
        return
    fix = f"nothing: huai-client sync {mirror.name} fetches it again and compares the whole tree"
    if not path.exists():
        yield warn(f"{path} is missing", fix)
        return
    opened = Repository(path, make=False)
    if not opened.has(applied):
        yield warn(f"the applied commit {applied[:12]} is not in {path}", fix)
        return
    listings = opened.commit(applied).snapshot.listings()
    count = sum(1 for _ in islice(listings, _DIRECTORIES))
    which = "the first" if count == _DIRECTORIES else "all"
    yield ok(f"{which} {count:,} directories of the applied commit can be read")


def tree(mirror: Mirror) -> Iterator[Finding]:
    """Check that DEST has synced content, or raise `DestinationError`: a disk may be unmounted."""
    recorded = states.load(mirror.paths.state)
    applied, path = recorded.applied, mirror.paths.repository
    if applied is None or not path.exists():
        yield skipped("nothing was applied yet")
        return
    opened = Repository(path, make=False)
    if not opened.has(applied):
        yield skipped("the repository lacks the applied commit")
        return
    with View(mirror.dest) as view:
        check_destination(view, [applied_selection(opened.commit(applied), recorded)])
    yield ok(f"{mirror.dest} has synced content")


def settings(mirror: Mirror) -> Iterator[Finding]:
    """Check the module's table as `check_config` does, and raise its `ConfigError`."""
    root = mirror.root
    check_config(load(root), mirror.name, root)
    rules = rules_of(mirror, SyncOptions())
    yield ok(f"valid; {len(rules.rules):,} filter rules")


def config(file: tuple[Path, ClientConfig]) -> Iterator[Finding]:
    """Check that no module's tree is, or is in, the tree of another one; warn of each that is."""
    path, content = file
    trees = sorted((os.path.realpath(each.dest), name) for name, each in content.modules.items())
    clear = True
    for (outer, outer_name), (inner, inner_name) in pairwise(trees):
        if Path(inner).is_relative_to(outer):
            clear = False
            message = f"{inner_name} is mirrored to {inner}, which is in the tree of {outer_name}"
            yield warn(message, f"give {inner_name} another dest, or let {outer_name} protect it")
    if clear:
        yield ok(f"{path}: {counted(len(trees), 'module')}")
