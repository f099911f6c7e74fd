"""The available memory, from /proc and the control groups of both versions."""

from pathlib import Path

import pytest

from huai_server.fallback.kind import AttrTreeError
from huai_server.fallback.memory import available_bytes

MIB = 1 << 20


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in {
        "proc/meminfo": "MemFree: 1 kB\nMemAvailable: 1024000 kB\n",
        **files,
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def v1(group: str, limit: int, usage: int, cache: int = 2) -> dict[str, str]:
    place = f"sys/fs/cgroup/memory{group}"
    return {
        f"{place}/memory.limit_in_bytes": f"{limit}\n",
        f"{place}/memory.usage_in_bytes": f"{usage}\n",
        f"{place}/memory.stat": f"inactive_file 1\ntotal_inactive_file {cache - 2}\n"
        f"active_file 9\ntotal_active_file 4\n",
    }


def v2(group: str, limit: str, usage: int, cache: int = 2) -> dict[str, str]:
    place = f"sys/fs/cgroup{group}"
    return {
        f"{place}/memory.max": f"{limit}\n",
        f"{place}/memory.current": f"{usage}\n",
        f"{place}/memory.stat": f"anon 5\ninactive_file {cache - 2}\nactive_file 4\n",
    }


def test_the_machine_alone(tmp_path: Path) -> None:
    assert available_bytes(write(tmp_path, {})) == 1000 * MIB
    groups = {"proc/self/cgroup": "4:memory:/\n0::/\n", **v1("", (1 << 63) - 4096, 5)}
    assert available_bytes(write(tmp_path, groups)) == 1000 * MIB


@pytest.mark.parametrize("line", ["4:memory:/a/b\n", "7:cpu,memory:/a/b\n3:pids:/a\n"])
def test_version_1(tmp_path: Path, line: str) -> None:
    root = write(tmp_path, {"proc/self/cgroup": line, **v1("/a/b", 100 * MIB, 70 * MIB, 10 * MIB)})
    assert available_bytes(root) == 40 * MIB


def test_version_2(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/a/b\n", **v2("/a/b", f"{100 * MIB}", 70 * MIB, 10 * MIB)}
    assert available_bytes(write(tmp_path, files)) == 40 * MIB


def test_the_limit_of_a_group_above_counts(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/a/b\n",
        **v2("/a/b", "max", 70 * MIB),
        **v2("/a", f"{100 * MIB}", 95 * MIB),
    }
    assert available_bytes(write(tmp_path, files)) == 5 * MIB + 2


def test_in_a_container_the_mount_is_the_group(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "4:memory:/docker/0123\n", **v1("", 30 * MIB, 10 * MIB)}
    assert available_bytes(write(tmp_path, files)) == 20 * MIB + 2


def test_a_group_over_its_limit_has_nothing_left(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/a\n", **v2("/a", f"{10 * MIB}", 11 * MIB)}
    assert available_bytes(write(tmp_path, files)) == 0


def test_a_kernel_that_does_not_tell(tmp_path: Path) -> None:
    with pytest.raises(AttrTreeError, match="MemAvailable"):
        available_bytes(write(tmp_path, {"proc/meminfo": "MemFree: 1 kB\n"}))
