"""Checks of DEST: its permissions, its room, and the features of its file system."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from huai_client.config.mirror import Mirror
from huai_client.config.modes import Modes
from huai_client.inspect.doctor.finding import Finding, ok, warn
from huai_client.inspect.doctor.machine import Needed, room_findings
from huai_client.inspect.doctor.sample import newest_local
from huai_client.state.state import load
from huai_client.tree.case import probe_folder
from huai_client.tree.destination import open_destination
from huai_program.locking import locked


def destination(mirror: Mirror) -> Iterator[Finding]:
    """Check that DEST exists, and that this user can change it."""
    os.close(open_destination(mirror.dest, write=True))
    yield ok(f"{mirror.dest} can be changed")


def set_id(mirror: Mirror) -> Iterator[Finding]:
    """Check that set-id programs of the upstream do not get the set-id bit."""
    if mirror.config.modes is not Modes.EXACT:
        yield ok(f'modes = "{mirror.config.modes}": none is set')
    elif os.statvfs(mirror.dest).f_flag & os.ST_NOSUID:
        yield ok('modes = "exact", and the file system is mounted nosuid')
    else:
        yield warn(
            'modes = "exact": the upstream can put set-id programs here',
            f'mount the file system of {mirror.dest} nosuid, or set modes = "safe"',
        )


def space(mirror: Mirror) -> Iterator[Finding]:
    """Check that the file system of DEST has room."""
    yield from room_findings(mirror.dest, _needed(mirror))


def _needed(mirror: Mirror) -> Needed | None:
    """Return what the newest commit adds to the applied one; zeros with a filter."""
    state, newest = load(mirror.paths.state), newest_local(mirror)
    if state.applied is None or newest is None:
        return None
    if newest.id == state.applied or mirror.config.filter:
        return Needed(0, 0)
    totals = newest.info.totals
    return Needed(totals.bytes - state.total_bytes, totals.entries - state.entries)


def feature(probe: Callable[[Path], Finding]) -> Callable[[Mirror], Iterator[Finding]]:
    """Return a check that probes DEST's file system."""
    return partial(_probed, probe)


def _probed(probe: Callable[[Path], Finding], mirror: Mirror) -> Iterator[Finding]:
    with _folder(mirror) as folder:
        yield probe(folder)


@contextmanager
def _folder(mirror: Mirror) -> Iterator[Path]:
    """Make a folder in DEST, and hold the module's lock; raises `LockedError` during a run."""
    with ExitStack() as stack:
        if mirror.paths.folder.is_dir():
            stack.enter_context(locked(mirror.paths.lock))
        handle = open_destination(mirror.dest, write=True)
        stack.callback(os.close, handle)
        yield stack.enter_context(probe_folder(handle, mirror.dest))
