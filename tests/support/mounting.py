"""Mounting in tests: needs a right that ordinary users, and root in a plain container, lack."""

import subprocess
import tempfile
from functools import cache

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
