"""DEST: whether it can be changed, and what its file system can do."""

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
from huai_client.tree.destination import open_destination
from huai_client.tree.probing import probe_folder
from huai_program.locking import locked


def destination(mirror: Mirror) -> Iterator[Finding]:
    """DEST exists, and this user can change it."""
    os.close(open_destination(mirror.dest, write=True))
    yield ok(f"{mirror.dest} can be changed")


def set_id(mirror: Mirror) -> Iterator[Finding]:
    """Whether a set-id program of the upstream would get the set-id bit here."""
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
    """The file system of DEST has room."""
    yield from room_findings(mirror.dest, _needed(mirror))


def _needed(mirror: Mirror) -> Needed | None:
    """Return what the newest commit adds to the applied one; nothing is known with a filter."""
    state, newest = load(mirror.paths.state), newest_local(mirror)
    if state.applied is None or newest is None:
        return None
    if newest.id == state.applied or mirror.config.filter:
        return Needed(0, 0)
    totals = newest.info.totals
    return Needed(totals.bytes - state.total_bytes, totals.entries - state.entries)


def feature(probe: Callable[[Path], Finding]) -> Callable[[Mirror], Iterator[Finding]]:
    """A check that tries something out in DEST's file system."""
    return partial(_probed, probe)


def _probed(probe: Callable[[Path], Finding], mirror: Mirror) -> Iterator[Finding]:
    with _folder(mirror) as folder:
        yield probe(folder)


@contextmanager
def _folder(mirror: Mirror) -> Iterator[Path]:
    """Make a folder in DEST, with the module's lock held; `LockedError` if a run is on."""
    with ExitStack() as stack:
        if mirror.paths.folder.is_dir():
            stack.enter_context(locked(mirror.paths.lock))
        handle = open_destination(mirror.dest, write=True)
        stack.callback(os.close, handle)
        yield stack.enter_context(probe_folder(handle, mirror.dest))
