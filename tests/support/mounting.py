"""Mounting in tests: needs a right that ordinary users, and root in a plain container, lack."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest


@cache
def may_mount() -> bool:
    """Return True if this process can mount a file system."""
    with tempfile.TemporaryDirectory() as point:
        command = ["mount", "-t", "tmpfs", "huai-test", point]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        if done.returncode == 0:
            subprocess.run(["umount", point], check=True, timeout=60)
    return done.returncode == 0


needs_mounts = pytest.mark.skipif(not may_mount(), reason="mounting is refused here")


@contextmanager
def small_disk(point: Path) -> Iterator[Path]:
    """Mount a file system of 4 MiB at the new folder `point`."""
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "huai-test", point], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=True, timeout=60)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Fill the file system of the folder `disk` during the block."""
    filler = disk / "filler"
    try:
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        yield
    finally:
        filler.unlink()


def with_own_mounts(script: str, *flags: str) -> list[str]:
    """Return a command that runs `script` by a shell whose mounts no other process sees.

    Further words are the arguments of the script.
    """
    # In a chroot the root is not a mount point, and nothing to make private.
    private = "mount --make-rprivate / 2>/dev/null || true"
    unshare = ["unshare", "--mount", "--propagation", "unchanged", *flags]
    return [*unshare, "sh", "-ec", f"{private}\n{script}", "sh"]
