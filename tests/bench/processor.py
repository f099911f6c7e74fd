"""CPU time: of one process, or of some and all that they start (cpuacct, version 1, counts)."""

import os
import time
from pathlib import Path
from typing import Self

from tests.bench.disk_reads import NotCountedError

_CPUACCT = Path("/sys/fs/cgroup/cpuacct")
_TRIES = 50
_PAUSE = 0.1


class ProcessorTime:
    """A group for one set of processes, as a context manager."""

    def __init__(self, name: str) -> None:
        self._group = _CPUACCT / f"huai-bench-{os.getpid()}-{name}"

    def __enter__(self) -> Self:
        """Make it, or raise `NotCountedError`."""
        try:
            self._group.mkdir()
        except OSError as error:
            raise NotCountedError(f"{self._group}: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        """Remove it; its processes have to be gone, which the kernel may notice late."""
        for _attempt in range(_TRIES):
            try:
                self._group.rmdir()
            except OSError:
                time.sleep(_PAUSE)
            else:
                return

    def adopt(self, process: int) -> None:
        """Count a process, and what it starts from now on."""
        (self._group / "cgroup.procs").write_text(f"{process}\n")

    def now(self) -> float:
        """Seconds so far."""
        return int((self._group / "cpuacct.usage").read_text()) / 1e9


def processor_time(process: int) -> float:
    """Seconds of one process so far, user and system."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
