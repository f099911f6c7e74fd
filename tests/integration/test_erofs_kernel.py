"""Mounting for real: by file and by loop device, large directories, clients that stay, refusals."""

import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_schema.entries import Symlink
from huai_schema.paths import RelPath
from huai_server.fallback.erofs.kind import ErofsKind
from huai_server.fallback.erofs.mounting import (
    MountError,
    loop_device,
    mount,
    unmount,
)
from tests.support.erofs_trees import expected_listing, make_image, mounted, read_listing
from tests.support.mounting import needs_mounts
from tests.support.schema.trees import directory, file, files, snapshot, tree_of
from tests.support.unprivileged import as_nobody

pytestmark = needs_mounts

TREE = tree_of(*files(b"d", 300), directory(b"d"), file(b"f", 5 << 40))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder on a tmpfs, from which nothing can be mounted but by a loop device."""
    folder = tmp_path / "memory"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "huai-test", folder], check=True, timeout=30)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True, timeout=30)


def source_of(point: Path) -> str:
    """Return the device or image that is mounted at a mount point."""
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    return next(line.split()[0] for line in lines if line.split()[1] == str(point))


@pytest.mark.slow
def test_a_hundred_thousand_names_in_one_directory(tmp_path: Path) -> None:
    tree = tree_of(directory(b"many"), *files(b"many", 100_000), *files(b"", 500))
    with mounted(tree, tmp_path) as top:
        # Each of them is also looked up by its name.
        assert read_listing(top) == expected_listing(tree)
        assert not os.path.lexists(top + b"many/f0000000")


def test_many_directories_in_one(tmp_path: Path) -> None:
    tree = tree_of(*(directory(b"d%05d" % number, number) for number in range(20_000)))
    with mounted(tree, tmp_path) as top:
        assert read_listing(top) == expected_listing(tree)


def test_symlinks_of_every_length_that_is_near_an_edge(tmp_path: Path) -> None:
    lengths = [1, 2, *range(30, 36), *range(2000, 2100), *range(4020, 4096)]
    tree = tree_of(*(Symlink(RelPath(b"%d" % length), b"x" * length, length) for length in lengths))
    with mounted(tree, tmp_path) as top:
        assert read_listing(top) == expected_listing(tree)


def test_sizes_that_need_many_chunks(tmp_path: Path) -> None:
    edge = 8 << 40
    sizes = [0, 1, edge - 1, edge, edge + 1, 1008 * edge, 1009 * edge, (1 << 63) - 1]
    tree = tree_of(*(file(b"%d" % size, size) for size in sizes), *files(b"", 100))
    with mounted(tree, tmp_path) as top:
        assert read_listing(top) == expected_listing(tree)


def test_a_loop_device_serves_where_a_file_cannot(memory: Path) -> None:
    with mounted(TREE, memory) as top:
        device = source_of(memory / "point")
        assert device.startswith("/dev/loop")
        backing = Path("/sys/block", device.removeprefix("/dev/"), "loop/backing_file")
        assert backing.read_text(encoding="utf-8").strip() == str(memory / "image")
        assert read_listing(top) == expected_listing(TREE)
    # The image is gone; the device may back another file by now.
    assert not backing.exists() or str(memory) not in backing.read_text(encoding="utf-8")


def test_a_loop_device_reads_what_is_in_memory_of_its_image(tmp_path: Path) -> None:
    # An image is kept in memory by its file: a device that reads past it asks the disk again.
    image = tmp_path / "image"
    make_image(TREE, image)
    with loop_device(image) as device:
        direct = Path("/sys/block", device.name, "loop/dio").read_text(encoding="utf-8")
        assert direct.strip() == "0"


def test_a_mount_lets_nothing_run_and_nothing_change(tmp_path: Path) -> None:
    with mounted(TREE, tmp_path) as top:
        flags = os.statvfs(top).f_flag
        for flag in (os.ST_RDONLY, os.ST_NOSUID, os.ST_NODEV, os.ST_NOEXEC):
            assert flags & flag


def test_whoever_has_it_open_finishes_on_it(tmp_path: Path) -> None:
    image, point = tmp_path / "image", tmp_path / "point"
    make_image(TREE, image)
    point.mkdir()
    mount(image, point)
    root = os.open(point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(root, fcntl.LOCK_SH)
        unmount(point)
        image.unlink()
        assert os.listdir(point) == []
        assert sorted(os.listdir(root)) == ["d", "f"]
        inside = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=root)
        assert len(os.listdir(inside)) == 300
        assert os.stat("f000123", dir_fd=inside).st_size == 123
        os.close(inside)
    finally:
        os.close(root)


def test_a_lock_on_its_root_is_a_lock(tmp_path: Path) -> None:
    with mounted(TREE, tmp_path) as top:
        client, builder = (os.open(top, os.O_RDONLY | os.O_DIRECTORY) for _ in range(2))
        fcntl.flock(client, fcntl.LOCK_SH)
        with pytest.raises(BlockingIOError):
            fcntl.flock(builder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(client)
        fcntl.flock(builder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(builder)


def test_nothing_to_unmount_is_no_fault(tmp_path: Path) -> None:
    unmount(tmp_path)
    unmount(tmp_path / "nowhere")


def test_an_ordinary_user_is_told(short_path: Path) -> None:
    short_path.chmod(0o755)
    make_image(TREE, short_path / "image")
    (short_path / "image").chmod(0o644)
    (short_path / "point").mkdir()

    def refused() -> tuple[str, str]:
        with pytest.raises(MountError) as caught:
            mount(short_path / "image", short_path / "point")
        return caught.value.message, caught.value.hint

    message, hint = as_nobody(refused)
    assert "not permitted" in message
    assert "CAP_SYS_ADMIN" in hint


def test_what_a_killed_build_left_goes(tmp_path: Path) -> None:
    generation = tmp_path / "generations" / "1"
    generation.parent.mkdir()
    (tmp_path / "attr-7.erofs.partial").write_text("half")
    kind = ErofsKind(tmp_path)
    kind.make(generation, snapshot(TREE), None)
    assert [path.suffix for path in tmp_path.glob("attr-*")] == [".erofs"]
    kind.discard(generation)
    assert os.listdir(tmp_path) == ["generations"]


def test_a_full_disk_leaves_no_image(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    size = "size=64k"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "t", small], check=True, timeout=30)
    try:
        many = tree_of(*files(b"", 3000, 1))
        with pytest.raises(Exception, match="No space left") as caught:
            make_image(many, small / "image")
        assert "make room" in getattr(caught.value, "hint", "")
        assert os.listdir(small) == []
        make_image(TREE, small / "image")
        assert os.listdir(small) == ["image"]
    finally:
        subprocess.run(["umount", small], check=True, timeout=30)
