"""The file of `--log-file`, as rsync writes it: ftpsync and others read their figures there.

Source: rsync's log.c.  Rule to keep: what stands there is the same with and without `--quiet`.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from huai_client.cli.rsync.exec_rsync import RsyncNeededError


@dataclass(frozen=True, slots=True)
class RsyncLog:
    """A file that lines are appended to."""

    path: Path

    @classmethod
    def opened(cls, name: str) -> "RsyncLog":
        """Made if it is missing; `RsyncNeededError` if nothing can be written there."""
        log = cls(Path(name).absolute())
        try:
            log._append(b"")
        except OSError as error:
            raise RsyncNeededError(f"--log-file: {name}: {error.strerror}") from error
        return log

    def write(self, line: bytes) -> None:
        """One line with its time; lost if the disk is full, which stops no mirror."""
        stamp = time.strftime("%Y/%m/%d %H:%M:%S")
        try:
            self._append(b"%b [%d] %b\n" % (stamp.encode(), os.getpid(), line))
        except OSError:
            return

    def _append(self, text: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        handle = os.open(self.path, flags, 0o666)
        try:
            os.write(handle, text)
        finally:
            os.close(handle)
