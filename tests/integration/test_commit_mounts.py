"""File systems that come and go inside a tree, or are mounted again: nothing is deleted."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from huai_server.commit.result import CommitResult
from huai_server.scan.mounts import MOUNTED_OVER, NOT_ENTERED, NOT_MOUNTED
from tests.support.committing import NAME, SECONDS, Upstream, run_server
from tests.support.mounting import needs_mounts

pytestmark = needs_mounts


@pytest.fixture
def upstream(short_path: Path) -> Iterator[Upstream]:
    upstream = Upstream(short_path)
    for number in range(200):
        upstream.write(f"pool/main/{number}", str(number))
    for path in ("pool/f", "pool/sub/f", "top", "zz/f"):
        upstream.write(path, path)
    yield upstream
    upstream.prove_sound()


class Disk:
    """A file system that can be mounted at a place."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.mounted = False

    def mount(self) -> None:
        self._run("mount", "-t", "tmpfs", "-o", "size=4m", "none", str(self._place))
        self.mounted = True

    def unmount(self) -> None:
        self._run("umount", str(self._place))
        self.mounted = False

    @staticmethod
    def _run(*command: str) -> None:
        subprocess.run(command, check=True, timeout=SECONDS)


Disks = Callable[[str], Disk]


@pytest.fixture
def disk(upstream: Upstream) -> Iterator[Disks]:
    disks: list[Disk] = []

    def make(path: str) -> Disk:
        disks.append(Disk(upstream.tree / path))
        return disks[-1]

    yield make
    for disk in reversed(disks):
        if disk.mounted:
            disk.unmount()


def reported_problems(result: CommitResult) -> list[tuple[str, str]]:
    assert result.exit_code == (41 if result.problems else 0)
    return [(os.fsdecode(each.path), each.reason) for each in result.problems]


def below(upstream: Upstream, top: str) -> dict[bytes, object]:
    return {
        path: entry for path, entry in upstream.entries().items() if path.startswith(top.encode())
    }


def commit(upstream: Upstream, *, accept: bool = False) -> CommitResult:
    return upstream.commit(accept_mounts=accept)


def test_a_directory_that_is_mounted_over_keeps_its_entries(
    upstream: Upstream, disk: Disks
) -> None:
    """The usual way to another disk: copied there, and mounted in its place."""
    commit(upstream)
    before = below(upstream, "pool")
    shutil.copytree(upstream.tree / "pool", upstream.tree.with_name("copy"))
    disk("pool").mount()
    shutil.copytree(upstream.tree.with_name("copy"), upstream.tree / "pool", dirs_exist_ok=True)
    upstream.write("top", "changed")
    for _ in range(2):
        result = commit(upstream)
        assert reported_problems(result) == [("pool", NOT_ENTERED)]
        assert below(upstream, "pool") == before
        assert upstream.file("top").size == 7
    assert reported_problems(commit(upstream, accept=True)) == []
    assert set(below(upstream, "pool")) == {b"pool"}
    assert reported_problems(commit(upstream)) == [], "what was accepted is how it is now"


def test_a_large_directory_is_judged_as_one(upstream: Upstream, disk: Disks) -> None:
    """It comes in parts, which all are of one file system."""
    upstream.configure(one_file_system=False)
    commit(upstream)
    before = below(upstream, "pool/sub")
    mounted = disk("pool/sub")
    mounted.mount()
    for number in range(5000):
        upstream.write(f"pool/sub/{number}")
    assert reported_problems(commit(upstream)) == [("pool/sub", MOUNTED_OVER)]
    assert below(upstream, "pool/sub") == before
    for accept in (True, False):
        assert reported_problems(commit(upstream, accept=accept)) == []
        assert len(below(upstream, "pool/sub")) == 5001
    mounted.unmount()
    (upstream.tree / "pool/sub/f").unlink()
    assert reported_problems(commit(upstream)) == [("pool/sub", NOT_MOUNTED)]
    assert len(below(upstream, "pool/sub")) == 5001


def test_a_mount_that_was_always_there_is_an_empty_directory(
    upstream: Upstream, disk: Disks
) -> None:
    disk("pool").mount()
    upstream.write("pool/inside")
    for _ in range(2):
        assert reported_problems(commit(upstream)) == []
        assert set(below(upstream, "pool")) == {b"pool"}


@pytest.mark.parametrize("left", [[], ["NOT_MOUNTED"], ["lost+found/x"]])
def test_a_mount_that_went_keeps_its_entries(
    upstream: Upstream, disk: Disks, left: list[str]
) -> None:
    """Though it is entered; a marker below the mount point is not one of its files."""
    upstream.configure(one_file_system=False)
    shutil.rmtree(upstream.tree / "pool")
    for path in left:
        upstream.write(f"pool/{path}")
    (upstream.tree / "pool").mkdir(exist_ok=True)
    mounted = disk("pool")
    mounted.mount()
    for number in range(200):
        upstream.write(f"pool/main/{number}")
    assert reported_problems(commit(upstream)) == []
    before = below(upstream, "pool")
    assert len(before) > 200
    mounted.unmount()
    for _ in range(2):
        assert reported_problems(commit(upstream)) == [("pool", NOT_MOUNTED)]
        assert below(upstream, "pool") == before
    assert reported_problems(commit(upstream, accept=True)) == []
    assert len(below(upstream, "pool")) < 5
    assert reported_problems(commit(upstream)) == []


def test_an_empty_disk_over_files_keeps_their_entries(upstream: Upstream, disk: Disks) -> None:
    upstream.configure(one_file_system=False)
    commit(upstream)
    before = below(upstream, "pool")
    mounted = disk("pool")
    mounted.mount()
    upstream.write("pool/lost+found/x")
    for _ in range(2):
        assert reported_problems(commit(upstream)) == [("pool", MOUNTED_OVER)]
        assert below(upstream, "pool") == before
    upstream.write("pool/f", "copied again")
    result = commit(upstream)
    assert reported_problems(result) == []
    assert result.counts.removed > 200
    assert upstream.file("pool/f").size == 12


def test_changes_inside_of_a_mount_are_changes(upstream: Upstream, disk: Disks) -> None:
    upstream.configure(one_file_system=False)
    disk("pool").mount()
    upstream.write("pool/a")
    upstream.write("pool/b")
    commit(upstream)
    (upstream.tree / "pool/a").unlink()
    (upstream.tree / "pool/b").unlink()
    upstream.write("pool/c")
    assert reported_problems(commit(upstream)) == []
    assert set(below(upstream, "pool")) == {b"pool", b"pool/c"}


def test_mounts_inside_of_one_that_went_are_remembered(upstream: Upstream, disk: Disks) -> None:
    """When the outer one is there again, and the inner one is not, its entries stay as well."""
    upstream.configure(one_file_system=False)
    shutil.rmtree(upstream.tree / "pool")
    (upstream.tree / "pool/inner").mkdir(parents=True)
    inner = disk("pool/inner")
    inner.mount()
    upstream.write("pool/inner/f")
    outer = disk("pool")

    def hide() -> None:
        inner.unmount()
        (upstream.tree / "pool").rename(upstream.tree.with_name("aside"))
        (upstream.tree / "pool").mkdir()
        outer.mount()

    assert reported_problems(commit(upstream)) == []
    before = below(upstream, "pool")
    hide()
    assert reported_problems(commit(upstream)) == [("pool", MOUNTED_OVER)]
    outer.unmount()
    (upstream.tree / "pool").rmdir()
    upstream.tree.with_name("aside").rename(upstream.tree / "pool")
    assert reported_problems(commit(upstream)) == [("pool/inner", NOT_MOUNTED)]
    assert below(upstream, "pool") == before


def test_the_command_line_says_what_to_do(upstream: Upstream, disk: Disks) -> None:
    run_server(upstream.root, "add", NAME, str(upstream.tree))
    assert run_server(upstream.root, "commit", NAME).returncode == 0
    disk("pool").mount()
    done = run_server(upstream.root, "commit", NAME)
    assert done.returncode == 41
    assert f"pool: {NOT_ENTERED}; its old entry stays" in done.stderr
    assert "--accept-mounts" in done.stderr
    assert run_server(upstream.root, "commit", NAME, "--accept-mounts").returncode == 0


STATE_BYTES = 112
LARGE = "x" * (4096 * STATE_BYTES + 8)
"""The content of a file for which a commit from a list looks into the table."""


def run(*command: str | Path) -> None:
    subprocess.run(list(map(str, command)), check=True, timeout=SECONDS)


class Mounts:
    """Mounts of a test; what is left of them at its end goes."""

    def __init__(self, layers: Path) -> None:
        """`layers` is in memory: an overlay cannot have another one as its upper layer."""
        self._places: list[Path] = []
        self.layers = layers
        self.memory(layers)

    def memory(self, place: Path) -> None:
        self._mount("-t", "tmpfs", "-o", "size=8m", "none", place)

    def overlay(self, name: str, place: Path) -> None:
        """One above an empty directory."""
        layers = self.layers / name
        for layer in ("upper", "lower", "work"):
            (layers / layer).mkdir(parents=True, exist_ok=True)
        lower, upper, work = (layers / layer for layer in ("lower", "upper", "work"))
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
def mounts(short_path: Path) -> Iterator[Mounts]:
    mounts = Mounts(short_path / "memory")
    yield mounts
    mounts.end()


def device(path: Path) -> int:
    return path.stat().st_dev


def test_overlays_that_are_mounted_in_another_order(short_path: Path, mounts: Mounts) -> None:
    up = Upstream(short_path)
    up.configure(one_file_system=False)
    places = {name: up.tree / name for name in ("a", "b")}
    for name, place in places.items():
        mounts.overlay(name, place)
        for number in range(20):
            up.write(f"{name}/{number}", f"{name}{number}")
        up.write(f"{name}/large", LARGE)
    assert up.commit().hashed_files == 42
    numbers = [device(place) for place in places.values()]
    for place in places.values():
        mounts.unmount(place)
    for name in ("b", "a"):
        mounts.overlay(name, places[name])
    assert [device(place) for place in places.values()] == numbers[::-1], "a test of nothing else"
    result = up.commit()
    assert (result.hashed_files, result.changed) == (0, False)
    up.write("a/3", "other content")
    assert up.commit_listed("a/3", "b/large").hashed_files == 1
    up.prove_sound()


def test_a_module_whose_own_file_system_is_mounted_again(short_path: Path, mounts: Mounts) -> None:
    place = short_path / "disk"
    mounts.overlay("disk", place)
    up = Upstream(short_path, place / "mirror/tree")
    up.write("d/f", "1")
    up.write("d/g", "2")
    assert up.commit().hashed_files == 2
    before = device(place)
    mounts.unmount(place)
    mounts.overlay("another", short_path / "another")
    mounts.overlay("disk", place)
    assert device(place) != before
    assert up.commit().hashed_files == 0
    os.link(up.tree / "d/f", up.tree / "d/h")
    result = up.commit()
    assert (result.hashed_files, result.changed) == (0, True), "its time of birth explains it"


def test_another_file_system_in_the_same_place_is_read(short_path: Path, mounts: Mounts) -> None:
    """Though its files have the same inodes, sizes and times, and it has the same device number."""
    place = short_path / "disk"
    up = Upstream(short_path, place)
    mounts.overlay("one", place)
    (mounts.layers / "two/upper").mkdir(parents=True)
    for number in range(5):
        up.write(str(number), "content")
        os.link(mounts.layers / f"one/upper/{number}", mounts.layers / f"two/upper/{number}")
    assert up.commit().hashed_files == 5
    number = device(place)
    mounts.unmount(place)
    mounts.overlay("two", place)
    assert device(place) == number
    assert up.commit().hashed_files == 5
    mounts.unmount(place)
    mounts.overlay("one", place)
    assert up.commit().hashed_files == 5, "only the last commit's is known"


def test_a_part_of_another_file_system_is_known_by_itself(short_path: Path, mounts: Mounts) -> None:
    """A bind mount of it, which may be made in another order than before as well."""
    disk = short_path / "disk"
    mounts.overlay("disk", disk)
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
    mounts.overlay("another", short_path / "another")
    mounts.overlay("disk", disk)
    for name in ("y", "x"):
        mounts.bind(disk / name, places[name])
    assert up.commit().hashed_files == 0


def test_a_bind_mount_of_the_tree_itself_changes_nothing(short_path: Path, mounts: Mounts) -> None:
    """A sandbox of systemd makes them, and a shell does not see them."""
    up = Upstream(short_path)
    up.write("d/f", "1")
    assert up.commit().hashed_files == 1
    mounts.bind(up.tree, up.tree)
    assert up.commit().hashed_files == 0
    mounts.bind(up.tree / "d", up.tree / "d")
    assert up.commit().hashed_files == 0
