"""Checks of what all modules need: programs, a writable state root, and room on the disks.

Rule: less than a twentieth and less than 10 GiB of room is a warning, and so is almost no room.
That is a failure if more is needed, or if the need is unknown.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from huai_client.config.load import config_path
from huai_client.inspect.doctor.finding import Finding, fail, ok, warn
from huai_client.transfer.rsync.confinement import version
from huai_client.transfer.rsync.run import require_rsync
from huai_program.humanize import counted, human
from huai_schema.errors import ExitCode

PROGRAM = "rsync"
_FIXED = (3, 4, 1)
_HOLES = (
    "before 3.4.1 a hostile server could write outside of the folder that is fetched to, or read "
    "files of this machine (CVE-2022-29154, CVE-2024-12086, -12087, -12088, -12747)"
)
_PATCHED = "install 3.4.1 or newer; your distribution's package may be patched under its old number"
UNIT_FOLDERS = (Path("/etc/systemd/system"), Path("/usr/lib/systemd/system"))
_RESTRICTIONS = "huai-.service.d/10-hardening.conf"
_BYTES_LEAST = 16 << 20
_BYTES_LITTLE = 10 << 30
_INODES_LEAST = 100
_INODES_LITTLE = 100_000
_SHARE = 20


def rsync(_: Path) -> Iterator[Finding]:
    """Warn of an rsync before 3.4.1; raise `RsyncRequirementError` if it is missing or too old."""
    version = require_rsync(PROGRAM)
    text = f"{shutil.which(PROGRAM)}, version {'.'.join(map(str, version))}"
    if version < _FIXED:
        yield warn(f"{text}: {_HOLES}", _PATCHED)
    else:
        yield ok(text)


def confinement(_: Path) -> Iterator[Finding]:
    """Check that the kernel can confine rsync to the files that it needs; warn if it cannot."""
    if abi := version():
        yield ok(f"Landlock {abi}: from a daemon, rsync can only read DEST and write staged files")
        return
    yield warn(
        "the kernel has no Landlock: rsync can read and write all files of this user",
        "use Linux 5.13 or newer with landlock among its security modules (lsm=), or a container",
    )


def units(_: Path) -> Iterator[Finding]:
    """Warn if systemd has services of huai, and not the restrictions that they share."""
    services = [path for folder in UNIT_FOLDERS for path in folder.glob("huai-*.service")]
    if not services or any((folder / _RESTRICTIONS).exists() for folder in UNIT_FOLDERS):
        yield ok(f"{counted(len(services), 'service')} of huai")
        return
    yield warn(
        f"{services[0]} may do more than it needs: huai-.service.d is missing",
        f"cp -r hooks/systemd/huai-.service.d {services[0].parent}; systemctl daemon-reload",
    )


def root(state_root: Path) -> Iterator[Finding]:
    """Check that this user can write the state root, and other users cannot read it."""
    try:
        status = state_root.stat()
    except FileNotFoundError:
        yield fail(f"{state_root} does not exist", f"mkdir -p {state_root}", ExitCode.CONFIG)
        return
    if not stat.S_ISDIR(status.st_mode):
        yield fail(f"{state_root} is not a directory", "give another --root", ExitCode.CONFIG)
        return
    for path in _state_files(state_root):
        if not os.access(path, os.W_OK, effective_ids=True, follow_symlinks=True):
            owner = f"user {path.stat().st_uid}"
            fix = f"run as {owner}, give it to user {os.geteuid()}, or give another --root"
            yield fail(f"{path} cannot be written", fix, ExitCode.FILE_IO)
            return
    if status.st_uid != os.geteuid():
        message = f"{state_root} belongs to user {status.st_uid}, and this is user {os.geteuid()}"
        yield warn(message, f"run as user {status.st_uid}, who may not change files of this user")
        return
    shared = _readable(state_root, status.st_mode)
    if shared is not None:
        yield warn(
            f"{shared} can be read by other users, with its logins or its lock",
            f"chmod -R go-rwx {state_root}",
        )
        return
    yield ok(f"{state_root} can be written, and read by its owner only")


def _readable(state_root: Path, mode: int) -> Path | None:
    """Return a private file below the root that other users can read, or None.

    `mode` is that of the root: None without permissions for others.
    """
    if not mode & 0o007:  # rights of the group are set on purpose
        return None
    secret = (config_path(state_root), *state_root.glob("modules/*/lock"))
    return next((path for path in secret if path.exists() and path.stat().st_mode & 0o044), None)


def _state_files(state_root: Path) -> Iterator[Path]:
    """Yield the root, the folders of its modules, and the files that runs replace."""
    yield state_root
    for folder in sorted(state_root.glob("modules/*")):
        yield folder
        yield from (path for path in sorted(folder.iterdir()) if not path.is_symlink())


class Needed(NamedTuple):
    """The minimum that a sync adds to a tree."""

    bytes: int
    inodes: int


def room_findings(folder: Path, needed: Needed | None = None) -> Iterator[Finding]:
    """Check the room in bytes, for users other than root, and in inodes, if they are counted.

    Yields a finding for each.  `needed` is the room that has to be free, if it is known.
    """
    status = os.statvfs(folder)
    free, size = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    text = f"{folder}: {human(free)} of {human(size)} are free"
    bytes_needed, inodes_needed = needed or (None, None)
    yield judge_room(text, free, size, (_BYTES_LEAST, _BYTES_LITTLE), bytes_needed)
    if status.f_files:
        text = f"{folder}: {status.f_favail:,} of {status.f_files:,} inodes are free"
        bounds = (_INODES_LEAST, _INODES_LITTLE)
        yield judge_room(text, status.f_favail, status.f_files, bounds, inodes_needed)


def judge_room(
    text: str, free: int, size: int, bounds: tuple[int, int], needed: int | None
) -> Finding:
    """Judge `free` of `size`, which `text` describes.

    A failure below `needed`, or below the first bound if that is unknown.  A warning below the
    first bound, and below the second one if under a twentieth is free.
    """
    least, little = bounds
    if free < (least if needed is None else needed):
        return fail(text, "make room, or mirror less", ExitCode.NO_SPACE)
    if free < least or (free < little and free * _SHARE < size):
        return warn(text, "make room before it is full")
    return ok(text)
