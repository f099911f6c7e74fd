"""Files that another user puts where a program is about to make one of its own."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

Plant = Callable[[Path, Path], None]
"""Takes a file that must not be written to, and the place."""

plants = pytest.mark.parametrize(
    "plant",
    [
        lambda victim, at: at.symlink_to(victim),
        lambda victim, at: at.hardlink_to(victim),
        lambda _victim, at: os.mkfifo(at),
    ],
    ids=["symlink", "hardlink", "fifo"],
)
