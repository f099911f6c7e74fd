"""Whether DEST has room for what is to come."""

import os
from collections.abc import Iterable
from pathlib import Path

from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError


class NoSpaceError(HuaiError):
    """The destination has no room for what is to come."""

    exit_code = ExitCode.NO_SPACE

    def __init__(self, message: str, *, bytes_short: int = 0, inodes_short: int = 0) -> None:
        """`message` says where and how much; the numbers are what is lacking."""
        super().__init__(message, hint="make room, or mirror less")
        self.bytes_short = bytes_short
        self.inodes_short = inodes_short


def check_space(dest: Path, files: Iterable[File]) -> None:
    """There has to be room for everything before the first byte."""
    needed = count = 0
    for file in files:
        needed += file.size
        count += 1
    free = os.statvfs(dest)
    room = free.f_bavail * free.f_frsize
    if needed > room:
        raise NoSpaceError(
            f"{dest}: {needed:,} bytes are needed and {room:,} are free; nothing was touched",
            bytes_short=needed - room,
        )
    if free.f_files and count > free.f_favail:
        raise NoSpaceError(
            f"{dest}: {count:,} inodes are needed and {free.f_favail:,} are free; "
            "nothing was touched",
            inodes_short=count - free.f_favail,
        )
