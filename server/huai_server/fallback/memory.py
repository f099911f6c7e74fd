"""The memory that is available on the machine and in the control groups of this process.

A container may have a much lower limit than the machine, and a process beyond it is killed.  The
figures come from /proc and the file systems of cgroups v1 and v2.
"""

from collections.abc import Iterator
from pathlib import Path

from huai_server.fallback.kind import AttrTreeError

_KIB = 1024
_NO_LIMIT = 1 << 62
"""Cgroups v1 have a limit near 2^63 instead of no limit."""
_V1, _V2 = ("memory.limit_in_bytes", "memory.usage_in_bytes"), ("memory.max", "memory.current")


def available_bytes(root: Path = Path("/")) -> int:
    """Return the bytes that this process can allocate within all limits.

    `root` is the folder of /proc and the cgroup file systems.  Raises `AttrTreeError` if the kernel
    has no estimate.
    """
    return min((_machine_bytes(root), *_group_bytes(root)))


def _machine_bytes(root: Path) -> int:
    """Return the kernel's estimate of the available bytes; `AttrTreeError` if it has none."""
    for line in (root / "proc/meminfo").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * _KIB
    raise AttrTreeError("/proc/meminfo: no MemAvailable", hint="huai needs Linux 3.14 or newer")


def _group_bytes(root: Path) -> Iterator[int]:
    """Yield the bytes below the limit of each group, from that of this process upwards."""
    for mount, group, names in _groups(root):
        # In a container the path may be the host's and be missing: then the mount is the group.
        place = mount / group if (mount / group).is_dir() else mount
        while place.is_relative_to(mount):
            left = _bytes_left(place, *names)
            if left is not None:
                yield left
            place = place.parent


def _groups(root: Path) -> Iterator[tuple[Path, str, tuple[str, str]]]:
    """Yield mount point, path of this process's group, and names of limit and usage."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in lines.splitlines():
        _, controllers, group = line.split(":", 2)
        if "memory" in controllers.split(","):
            yield root / "sys/fs/cgroup/memory", group.lstrip("/"), _V1
        elif not controllers:
            yield root / "sys/fs/cgroup", group.lstrip("/"), _V2


def _bytes_left(group: Path, limit_name: str, usage_name: str) -> int | None:
    """Return the bytes below the limit of one group; None if it has no limit."""
    try:
        limit = int((group / limit_name).read_text(encoding="ascii"))
        usage = int((group / usage_name).read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such file in a root group; the word "max"
        return None
    return None if limit >= _NO_LIMIT else max(0, limit - usage + _droppable(group))


def _droppable(group: Path) -> int:
    """Return the bytes of a group's inactive page cache and half its active one; 0 if unknown."""
    try:
        lines = (group / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    values = {line.partition(" ")[0]: line.partition(" ")[2] for line in lines}

    def total(name: str) -> int:
        """Return the value with all groups below, which version 1 has under another name."""
        return int(values.get(f"total_{name}", values.get(name, "0")))

    return total("inactive_file") + total("active_file") // 2
