"""File systems that are mounted again: nothing is read for that, whatever their number is then."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.committing import SECONDS, Upstream
from tests.support.mounting import needs_mounts

STATE_BYTES = 112
LARGE = "x" * (4096 * STATE_BYTES + 8)
"""The content of a file for which a commit from a list looks into the table."""


def run(*command: str | Path) -> None:
    subprocess.run(list(map(str, command)), check=True, timeout=SECONDS)


class Mounts:
    """Mounts of a test; what is left of them at its end goes."""

    def __init__(self) -> None:
        self._places: list[Path] = []

    def memory(self, place: Path) -> None:
        self._mount("-t", "tmpfs", "-o", "size=8m", "none", place)

    def overlay(self, layers: Path, place: Path) -> None:
        """One above an empty directory."""
        for name in ("upper", "lower", "work"):
            (layers / name).mkdir(parents=True, exist_ok=True)
        lower, upper, work = (layers / name for name in ("lower", "upper", "work"))
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        self._mount("-t", "overlay", "-o", options, "none", place)

    def bind(self, source: Path, place: Path) -> None:
        self._mount("--bind", source, place)

    def unmount(self, place: Path) -> None:
        run("umount", place)
        self._places.remove(place)

    def end(self) -> None:
        for place in reversed(self._places):
            run("umount", "--lazy", place)

    def _mount(self, *arguments: str | Path) -> None:
        place = Path(arguments[-1])
        place.mkdir(parents=True, exist_ok=True)
        run("mount", *arguments)
        self._places.append(place)


@pytest.fixture
def mounts() -> Iterator[Mounts]:
    mounts = Mounts()
    yield mounts
    mounts.end()


@pytest.fixture
def layers(short_path: Path, mounts: Mounts) -> Path:
    """In memory: an overlay cannot have another one as its upper layer, and /tmp may be on one."""
    place = short_path / "memory"
    mounts.memory(place)
    return place


def device(path: Path) -> int:
    return path.stat().st_dev


@needs_mounts
def test_overlays_that_are_mounted_in_another_order(
    short_path: Path, mounts: Mounts, layers: Path
) -> None:
    up = Upstream(short_path)
    up.configure(one_file_system=False)
    places = {name: up.tree / name for name in ("a", "b")}
    for name, place in places.items():
        mounts.overlay(layers / name, place)
        for number in range(20):
            up.write(f"{name}/{number}", f"{name}{number}")
        up.write(f"{name}/large", LARGE)
    assert up.commit().hashed_files == 42
    numbers = [device(place) for place in places.values()]
    for place in places.values():
        mounts.unmount(place)
    for name in ("b", "a"):
        mounts.overlay(layers / name, places[name])
    assert [device(place) for place in places.values()] == numbers[::-1], "a test of nothing else"
    result = up.commit()
    assert (result.hashed_files, result.changed) == (0, False)
    up.write("a/3", "other content")
    assert up.commit_listed("a/3", "b/large").hashed_files == 1
    up.prove_sound()


@needs_mounts
def test_a_module_whose_own_file_system_is_mounted_again(
    short_path: Path, mounts: Mounts, layers: Path
) -> None:
    place = short_path / "disk"
    mounts.overlay(layers / "disk", place)
    up = Upstream(short_path, place / "mirror/tree")
    up.write("d/f", "1")
    up.write("d/g", "2")
    assert up.commit().hashed_files == 2
    before = device(place)
    mounts.unmount(place)
    mounts.overlay(layers / "another", short_path / "another")
    mounts.overlay(layers / "disk", place)
    assert device(place) != before
    assert up.commit().hashed_files == 0
    os.link(up.tree / "d/f", up.tree / "d/h")
    result = up.commit()
    assert (result.hashed_files, result.changed) == (0, True), "its time of birth explains it"


@needs_mounts
def test_another_file_system_in_the_same_place_is_read(
    short_path: Path, mounts: Mounts, layers: Path
) -> None:
    """Though its files have the same inodes, sizes and times, and it has the same device number."""
    place = short_path / "disk"
    up = Upstream(short_path, place)
    mounts.overlay(layers / "one", place)
    (layers / "two/upper").mkdir(parents=True)
    for number in range(5):
        up.write(str(number), "content")
        os.link(layers / f"one/upper/{number}", layers / f"two/upper/{number}")
    assert up.commit().hashed_files == 5
    number = device(place)
    mounts.unmount(place)
    mounts.overlay(layers / "two", place)
    assert device(place) == number
    assert up.commit().hashed_files == 5
    mounts.unmount(place)
    mounts.overlay(layers / "one", place)
    assert up.commit().hashed_files == 5, "only the last commit's is known"


@needs_mounts
def test_a_part_of_another_file_system_is_known_by_itself(
    short_path: Path, mounts: Mounts, layers: Path
) -> None:
    """A bind mount of it, which may be made in another order than before as well."""
    disk = short_path / "disk"
    mounts.overlay(layers / "disk", disk)
    up = Upstream(short_path)
    up.configure(one_file_system=False)
    for name in ("x", "y"):
        (disk / name).mkdir()
        (disk / name / "f").write_text(name)
    places = {name: up.tree / name for name in ("x", "y")}
    for name, place in places.items():
        mounts.bind(disk / name, place)
    assert up.commit().hashed_files == 2
    for place in (*places.values(), disk):
        mounts.unmount(place)
    mounts.overlay(layers / "another", short_path / "another")
    mounts.overlay(layers / "disk", disk)
    for name in ("y", "x"):
        mounts.bind(disk / name, places[name])
    assert up.commit().hashed_files == 0


@needs_mounts
def test_a_bind_mount_of_the_tree_itself_changes_nothing(short_path: Path, mounts: Mounts) -> None:
    """A sandbox of systemd makes them, and a shell does not see them."""
    up = Upstream(short_path)
    up.write("d/f", "1")
    assert up.commit().hashed_files == 1
    mounts.bind(up.tree, up.tree)
    assert up.commit().hashed_files == 0
    mounts.bind(up.tree / "d", up.tree / "d")
    assert up.commit().hashed_files == 0
