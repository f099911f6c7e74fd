"""What all modules need: programs, a state root that can be written, and room on the disks.

Rule: less than a twentieth and less than 10 GiB of room is a warning, and so is next to no room.
That is a failure where more is needed, or where it is not known how much.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from huai_client.config.load import config_path
from huai_client.inspect.doctor.finding import Finding, fail, ok, warn
from huai_client.transfer.rsync.landlock import version
from huai_client.transfer.rsync.run import require_rsync
from huai_program.humanize import human
from huai_schema.errors import ExitCode

PROGRAM = "rsync"
_FIXED = (3, 4, 1)
_HOLES = (
    "before 3.4.1 a hostile server could write outside of the folder that is fetched to, or read "
    "files of this machine (CVE-2022-29154, CVE-2024-12086, -12087, -12088, -12747)"
)
_PATCHED = "install 3.4.1 or newer; your distribution's package may be patched under its old number"
_BYTES_LEAST = 16 << 20
_BYTES_LITTLE = 10 << 30
_INODES_LEAST = 100
_INODES_LITTLE = 100_000
_SHARE = 20


def rsync(_: Path) -> Iterator[Finding]:
    """Rsync is installed, and new enough."""
    version = require_rsync(PROGRAM)
    text = f"{shutil.which(PROGRAM)}, version {'.'.join(map(str, version))}"
    if version < _FIXED:
        yield warn(f"{text}: {_HOLES}", _PATCHED)
    else:
        yield ok(text)


def confinement(_: Path) -> Iterator[Finding]:
    """The kernel can confine rsync to the files that it needs."""
    if known := version():
        yield ok(
            f"Landlock {known}: from a daemon, rsync reads DEST and writes what arrives, no more"
        )
        return
    yield warn(
        "the kernel has no Landlock: rsync may read and write what this user may",
        "use Linux 5.13 or newer with landlock among its security modules (lsm=), or a container",
    )


def root(place: Path) -> Iterator[Finding]:
    """This user can write the state root, and other users cannot read it."""
    try:
        status = place.stat()
    except FileNotFoundError:
        yield fail(f"{place} does not exist", f"mkdir -p {place}", ExitCode.CONFIG)
        return
    if not stat.S_ISDIR(status.st_mode):
        yield fail(f"{place} is not a directory", "give another --root", ExitCode.CONFIG)
        return
    for each in _state_files(place):
        if not os.access(each, os.W_OK, effective_ids=True, follow_symlinks=True):
            owner = f"user {each.stat().st_uid}"
            fix = f"run as {owner}, give it to user {os.geteuid()}, or give another --root"
            yield fail(f"{each} cannot be written", fix, ExitCode.FILE_IO)
            return
    if status.st_uid != os.geteuid():
        message = f"{place} belongs to user {status.st_uid}, and this is user {os.geteuid()}"
        yield warn(message, f"run as user {status.st_uid}: what you write it may not change")
        return
    shared = _readable(place, status.st_mode)
    if shared is not None:
        yield warn(
            f"{shared} can be read by other users: logins, and locks that anybody may hold",
            f"chmod -R go-rwx {place}",
        )
        return
    yield ok(f"{place} can be written, and read by its owner only")


def _readable(place: Path, mode: int) -> Path | None:
    """A file below the root that others may read and should not; None: there is none."""
    if not mode & 0o007:  # rights of the group are set on purpose
        return None
    secret = (config_path(place), *place.glob("modules/*/lock"))
    return next((each for each in secret if each.exists() and each.stat().st_mode & 0o044), None)


def root_space(place: Path) -> Iterator[Finding]:
    """There is room for state and metadata."""
    yield from room_findings(place)


def _state_files(place: Path) -> Iterator[Path]:
    """The root, the folders of its modules, and the files that runs replace."""
    yield place
    for folder in sorted(place.glob("modules/*")):
        yield folder
        yield from (each for each in sorted(folder.iterdir()) if not each.is_symlink())


class Needed(NamedTuple):
    """The least that a sync adds to a tree."""

    bytes: int
    inodes: int


def room_findings(place: Path, needed: Needed | None = None) -> Iterator[Finding]:
    """Room in bytes, as users other than root have it, and in inodes, where they are counted.

    `needed`: how much has to be free; None: not known.
    """
    status = os.statvfs(place)
    free, size = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    text = f"{place}: {human(free)} of {human(size)} are free"
    bytes_needed, inodes_needed = needed or (None, None)
    yield judge_room(text, free, size, (_BYTES_LEAST, _BYTES_LITTLE), bytes_needed)
    if status.f_files:
        text = f"{place}: {status.f_favail:,} of {status.f_files:,} inodes are free"
        bounds = (_INODES_LEAST, _INODES_LITTLE)
        yield judge_room(text, status.f_favail, status.f_files, bounds, inodes_needed)


def judge_room(
    text: str, free: int, size: int, bounds: tuple[int, int], needed: int | None
) -> Finding:
    """Judge `free` of `size`: a failure below `needed`, or below the first bound if not known."""
    least, little = bounds
    if free < (least if needed is None else needed):
        return fail(text, "make room, or mirror less", ExitCode.NO_SPACE)
    if free < least or (free < little and free * _SHARE < size):
        return warn(text, "make room before it is full")
    return ok(text)
