"""How much memory is available: of the machine, and in the control groups of this process.

A container may have a much lower limit than the machine, and a process beyond it is killed.  The
figures are from /proc and the file systems of cgroups v1 and v2.
"""

from collections.abc import Iterator
from pathlib import Path

from huai_server.fallback.kind import AttrTreeError

_KIB = 1024
_NO_LIMIT = 1 << 62
"""Cgroups v1 write a number near 2^63 for "none"."""
_V1, _V2 = ("memory.limit_in_bytes", "memory.usage_in_bytes"), ("memory.max", "memory.current")


def available_bytes(root: Path = Path("/")) -> int:
    """Bytes that this process can allocate now, by the machine and by every limit on it.

    `root` is where /proc and the cgroup file systems are looked for.
    """
    return min((_of_the_machine(root), *_of_the_groups(root)))


def _of_the_machine(root: Path) -> int:
    """Bytes, as the kernel estimates it."""
    for line in (root / "proc/meminfo").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * _KIB
    raise AttrTreeError("/proc/meminfo: no MemAvailable", hint="huai needs Linux 3.14 or newer")


def _of_the_groups(root: Path) -> Iterator[int]:
    """What is left below the limit of each group, from this process's own one upwards."""
    for mount, group, names in _groups(root):
        # In a container the path may be the host's and not exist: then the mount is the group.
        place = mount / group if (mount / group).is_dir() else mount
        while place.is_relative_to(mount):
            left = _left(place, *names)
            if left is not None:
                yield left
            place = place.parent


def _groups(root: Path) -> Iterator[tuple[Path, str, tuple[str, str]]]:
    """Where the memory controller's groups are mounted, and which is this process's."""
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


def _left(group: Path, limit_name: str, usage_name: str) -> int | None:
    """Bytes below the limit of one group; None: it has none."""
    try:
        limit = int((group / limit_name).read_text(encoding="ascii"))
        usage = int((group / usage_name).read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such file in a root group; the word "max"
        return None
    return None if limit >= _NO_LIMIT else max(0, limit - usage + _droppable(group))


def _droppable(group: Path) -> int:
    """Bytes of page cache that the kernel frees first, with half of what was used lately."""
    try:
        lines = (group / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    found = {line.partition(" ")[0]: line.partition(" ")[2] for line in lines}

    def of(name: str) -> int:
        """With all groups below it, which is another name in version 1."""
        return int(found.get(f"total_{name}", found.get(name, "0")))

    return of("inactive_file") + of("active_file") // 2
