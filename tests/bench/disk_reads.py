"""How often processes read from a disk: a control group (blkio, version 1) counts.

The counters stay at 0 until the group has any throttling rule, so it gets one that never
throttles.  They count what the kernel submits, about twice what /proc/diskstats shows.
The rule to keep: the group is removed and this process back where it was, whatever happens.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

_BLKIO = Path("/sys/fs/cgroup/blkio")
_NEVER = 1_000_000_000_000
_TRIES = 50
_PAUSE = 0.1


class NotCountedError(Exception):
    """This machine, or this user, cannot count disk reads; says why."""


class Reads(NamedTuple):
    """Since the group was made."""

    operations: int
    size: int
    """Bytes."""

    def since(self, before: "Reads") -> "Reads":
        """Return the reads since `before`."""
        return Reads(self.operations - before.operations, self.size - before.size)


class ControlGroup:
    """A group for one set of processes, as a context manager."""

    def __init__(self, controller: Path, name: str) -> None:
        self._controller = controller
        self._group = controller / f"huai-bench-{os.getpid()}-{name}"

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
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(_PAUSE)
            else:
                return

    def adopt(self, process: int) -> None:
        """Count a process, and what it starts from now on."""
        (self._group / "cgroup.procs").write_text(f"{process}\n")

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """Processes started inside belong to the group, and so do their children."""
        home = _own_group(self._controller)
        (self._group / "cgroup.procs").write_text(f"{os.getpid()}\n")
        try:
            yield
        finally:
            (home / "cgroup.procs").write_text(f"{os.getpid()}\n")


class DiskReads(ControlGroup):
    """A group whose reads of a disk are counted; `folder` is on the disk watched."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(_BLKIO, name)
        self._disk = _disk(folder)

    def __enter__(self) -> Self:
        """Make it, with a rule that never throttles."""
        super().__enter__()
        rule = self._group / "blkio.throttle.read_bps_device"
        try:
            rule.write_text(f"{self._disk} {_NEVER}\n")
        except OSError as error:
            self.__exit__()
            raise NotCountedError(f"{rule}: {error.strerror}") from error
        return self

    def now(self) -> Reads:
        """Return the reads so far."""
        return Reads(self._read("io_serviced"), self._read("io_service_bytes"))

    def _read(self, counter: str) -> int:
        for line in (self._group / f"blkio.throttle.{counter}").read_text().splitlines():
            if line.startswith(f"{self._disk} Read "):
                return int(line.split()[2])
        return 0


def drop_caches() -> None:
    """Drop the kernel's cache of the disk; needs root."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
    except OSError as error:
        raise NotCountedError(f"the page cache cannot be dropped: {error.strerror}") from error


def _own_group(controller: Path) -> Path:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller.name in controllers.split(","):
            return controller / path.lstrip("/")
    raise NotCountedError(f"a version 1 control group of {controller.name} is missing")


def _disk(folder: Path) -> str:
    """Major and minor number of the whole disk below a folder."""
    number = folder.stat().st_dev
    place = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not place.exists():
        raise NotCountedError(f"{folder} is not on a disk")
    if (place / "partition").exists():
        place = place.resolve().parent
    return (place / "dev").read_text().strip()
