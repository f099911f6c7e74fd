"""Checks of DEST: its permissions, its room, and the features of its file system."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from huai_client.config.mirror import Mirror
from huai_client.config.modes import Modes
from huai_client.inspect.doctor.finding import Finding, fail, ok, warn
from huai_client.inspect.doctor.machine import Needed, room_findings
from huai_client.inspect.doctor.sample import newest_local
from huai_client.state.state import load
from huai_client.tree.case import folds_case, probe_folder
from huai_client.tree.destination import open_destination
from huai_native._native import rename_noreplace
from huai_program.locking import locked
from huai_schema.errors import ExitCode

_FICLONE = 0x4004_9409
"""ioctl_ficlone(2)."""
_SECOND = 1_000_000_000
_FINE = 1_600_000_000 * _SECOND + 123_456_789
_LATE = 4_200_000_000 * _SECOND + 987_654_321
"""A time in the year 2103."""
_FIX = "keep the mirror on another file system, such as ext4, xfs, btrfs or ZFS"


def hardlinks(folder: Path) -> Finding:
    """Check that link(2) gives an inode another name; otherwise the finding is a failure."""
    one, two = folder / "one", folder / "two"
    one.touch()
    try:
        two.hardlink_to(one)
    except OSError as error:
        return fail(f"no hardlinks: {error.strerror}", _FIX, ExitCode.DESTINATION)
    if two.stat().st_ino != one.stat().st_ino:
        return fail("a hardlink has a different inode", _FIX, ExitCode.DESTINATION)
    return ok("supported")


def reflinks(folder: Path) -> Finding:
    """Check if a copy can share the blocks of its source; nothing depends on that."""
    source = folder / "source"
    source.write_bytes(bytes(4096))
    with source.open("rb") as old, (folder / "copy").open("wb") as new:
        try:
            fcntl.ioctl(new.fileno(), _FICLONE, old.fileno())
        except OSError as error:
            return ok(f"not supported ({error.strerror}): copies take additional room")
    return ok("supported: copies take no room")


def noreplace(folder: Path) -> Finding:
    """Check that a rename can refuse to replace a file (renameat2(2)); warn if it cannot."""
    (folder / "old").touch()
    (folder / "taken").touch()
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        supported = rename_noreplace(handle, b"old", b"new")
        if supported:
            rename_noreplace(handle, b"new", b"taken")
    except FileExistsError:
        return ok("supported")
    finally:
        os.close(handle)
    if supported:
        return fail("a rename replaced an existing file", _FIX, ExitCode.DESTINATION)
    return warn(
        "not supported: a file that another program makes during a sync may be replaced",
        "let nothing but huai write there, or use a newer kernel or file system",
    )


def times(folder: Path) -> Finding:
    """Check that times of entries made in `folder` are kept exactly; warn if not after 2038."""
    file, directory, symlink = folder / "timed", folder / "timed-folder", folder / "timed-link"
    file.touch()
    directory.mkdir()
    symlink.symlink_to("timed")
    for path in (file, directory, symlink):
        actual = _set_time(path, _FINE)
        if actual != _FINE:
            message = f"times are {abs(actual - _FINE):,} ns off: every file would differ"
            return fail(message, _FIX, ExitCode.DESTINATION)
    if _set_time(file, _LATE) != _LATE:
        return warn("times after 2038 are not kept", _FIX)
    return ok("kept to the nanosecond")


def _set_time(path: Path, time: int) -> int:
    """Set both times of an entry, as a sync does, and return its mtime."""
    os.utime(path, ns=(time, time), follow_symlinks=False)
    return path.lstat().st_mtime_ns


def modes(folder: Path) -> Finding:
    """Check that a file made in `folder` keeps its permission bits, setuid included."""
    file = folder / "mode"
    file.touch()
    for mode in (0o604, 0o4711):
        try:
            file.chmod(mode)
        except OSError as error:
            return fail(f"mode {mode:o}: {error.strerror}", _FIX, ExitCode.DESTINATION)
        actual = file.stat().st_mode & 0o7777
        if actual != mode:
            return fail(f"mode {mode:o} becomes {actual:o}", _FIX, ExitCode.DESTINATION)
    return ok("kept")


def any_names(folder: Path) -> Finding:
    """Check that names that differ, also by case, are two files; warn if they must be UTF-8."""
    if folds_case(folder):
        message = "upper and lower case are the same: files would replace each other"
        return fail(message, _FIX, ExitCode.DESTINATION)
    odd = folder / os.fsdecode(b"\xff\n")
    try:
        odd.touch()
    except OSError as error:
        return warn(f"names that are not UTF-8 cannot be made: {error.strerror}", _FIX)
    if os.fsencode(odd.name) not in os.listdir(os.fsencode(folder)):
        return fail("a name is stored as another one", _FIX, ExitCode.DESTINATION)
    return ok("kept unchanged")


def destination(mirror: Mirror) -> Iterator[Finding]:
    """Check that DEST exists and this user can change it, or raise `DestinationError`."""
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
    """Check that DEST has room for what the newest local commit adds to the applied one."""
    yield from room_findings(mirror.dest, _needed(mirror))


def _needed(mirror: Mirror) -> Needed | None:
    """Return what the newest local commit adds to the applied one, zeros with a filter.

    None if a commit is missing; negative if it removes more.
    """
    state, newest = load(mirror.paths.state), newest_local(mirror)
    if state.applied is None or newest is None:
        return None
    if newest.id == state.applied or mirror.config.filter:
        return Needed(0, 0)
    totals = newest.info.totals
    return Needed(totals.bytes - state.total_bytes, totals.entries - state.entries)


def feature(probe: Callable[[Path], Finding]) -> Callable[[Mirror], Iterator[Finding]]:
    """Return a check that calls `probe` with a temporary folder in DEST, with the lock held."""

    def probed(mirror: Mirror) -> Iterator[Finding]:
        with _folder(mirror) as folder:
            yield probe(folder)

    return probed


@contextmanager
def _folder(mirror: Mirror) -> Iterator[Path]:
    """Yield a temporary folder in DEST, holding the module's lock; `LockedError` during a run."""
    with ExitStack() as stack:
        if mirror.paths.folder.is_dir():
            stack.enter_context(locked(mirror.paths.lock))
        handle = open_destination(mirror.dest, write=True)
        stack.callback(os.close, handle)
        yield stack.enter_context(probe_folder(handle, mirror.dest))
