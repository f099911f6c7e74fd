"""CPU time: of one process, or of some and all that they start (cpuacct, version 1, counts)."""

import os
from collections.abc import Sequence
from pathlib import Path

from tests.bench.disk_reads import ControlGroup
from tests.bench.spending import Spent, spend

_CPUACCT = Path("/sys/fs/cgroup/cpuacct")


class ProcessorTime(ControlGroup):
    """A group for one set of processes, as a context manager."""

    def __init__(self, name: str) -> None:
        super().__init__(_CPUACCT, name)

    def now(self) -> float:
        """Seconds so far."""
        return int((self._group / "cpuacct.usage").read_text()) / 1e9

    def spend(self, command: Sequence[str], *, until: bytes | None = None) -> Spent:
        """Run a command; its CPU time includes that of the group's servers."""
        with self.joined():
            before = self.now()
            spent = spend(command, until=until)
            return spent._replace(cpu=self.now() - before)


def processor_time(process: int) -> float:
    """Seconds of one process so far, user and system."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
