"""DEST: whether it can be changed, and what its file system can do."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from shutil import rmtree

from huai_client.inspect.doctor.finding import Finding, ok, warn
from huai_client.inspect.doctor.machine import room_findings
from huai_client.mirror import Mirror
from huai_client.modes import Modes
from huai_client.transfer.staging.root import open_root
from huai_client.tree import STAGING_NAME
from huai_client.tree.destination import open_destination
from huai_client.tree.handles import handle_path
from huai_schema.program.locking import locked

_PROBES = "huai-doctor"


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
    yield from room_findings(mirror.dest)


def feature(probe: Callable[[Path], Finding]) -> Callable[[Mirror], Iterator[Finding]]:
    """A check that tries something out in DEST's file system."""
    return partial(_probed, probe)


def _probed(probe: Callable[[Path], Finding], mirror: Mirror) -> Iterator[Finding]:
    with _folder(mirror) as folder:
        yield probe(folder)


@contextmanager
def _folder(mirror: Mirror) -> Iterator[Path]:
    """An empty folder beside the staging area, with the module's lock held.

    It is removed afterwards, and the times of DEST are restored.  `LockedError` if a run is on.
    """
    with ExitStack() as stack:
        if mirror.paths.folder.is_dir():
            stack.enter_context(locked(mirror.paths.lock))
        handle = open_destination(mirror.dest, write=True)
        stack.callback(os.close, handle)
        before = os.fstat(handle)
        staging = mirror.dest / os.fsdecode(STAGING_NAME)
        probes = staging / _PROBES
        try:
            folder = open_root(probes)
            stack.callback(os.close, folder)
            yield Path(os.fsdecode(handle_path(folder)))
        finally:
            rmtree(probes, ignore_errors=True)
            with suppress(OSError):  # something else is in it
                staging.rmdir()
            os.utime(handle, ns=(before.st_atime_ns, before.st_mtime_ns))
