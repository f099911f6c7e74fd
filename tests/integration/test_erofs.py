"""EROFS images: mounted for real, by file and by loop device, whatever they hold."""

import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings

from huai_schema.entries import Symlink
from huai_schema.paths import ROOT, RelPath, parent
from huai_server.config.tables import ModuleFallback
from huai_server.fallback.erofs.kind import ErofsKind
from huai_server.fallback.erofs.mounting import (
    MountError,
    loop_device,
    mount,
    unmount,
)
from tests.support.attr_trees import Fallback, list_entries
from tests.support.erofs_trees import dots, expected_listing, make_image, mounted, read_listing
from tests.support.mounting import needs_mounts
from tests.support.schema.strategies import RANDOMS, trees
from tests.support.schema.trees import Tree, directory, file, files, random_tree, snapshot, tree_of
from tests.support.unprivileged import as_nobody

pytestmark = needs_mounts


@pytest.fixture
def module(short_path: Path) -> Iterator[Fallback]:
    module = Fallback(short_path)
    module.configure(fallback=ModuleFallback(kind="erofs"))
    yield module
    for generation in module.attr.generations.glob("*"):
        subprocess.run(["umount", "-l", generation], check=False, timeout=30)


def images(module: Fallback) -> list[Path]:
    return sorted(module.places.folder.glob("attr-*.erofs"))


def test_many_names_long_symlinks_and_deep_folders(module: Fallback) -> None:
    for number in range(5000):
        (module.tree / f"name-{number}").touch()
    for length in (1, 59, 60, 4000, 4095):
        (module.tree / f"link{length}").symlink_to("x" * length)
    deep = module.tree.joinpath(*["d" * 200] * 15)
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    os.chown(deep / "file", 100_000, 4_000_000_000)
    os.truncate(deep / "file", 3 << 40)
    for number in range(300):
        os.link(deep / "file", module.tree / f"linked-{number}")
    module.commit()
    assert module.ensure().action == "built"
    module.assert_equal()
    (image,) = images(module)
    # Reported as the memory it takes, before it is built.
    assert image.stat().st_size < 219 * len(list_entries(module.tree)) + 100_000


def test_an_image_of_an_earlier_run_is_never_mounted(module: Fallback) -> None:
    module.write("f", "x")
    module.commit()
    module.ensure()
    (image,) = images(module)
    # As after a restart of the machine: the folder in memory is gone, the image is not.
    subprocess.run(["umount", module.attr.generations / "1"], check=True, timeout=30)
    (module.attr.generations / "1").rmdir()
    module.attr.state.unlink()
    module.attr.tree.unlink()
    image.write_bytes(b"damaged")
    other = image.with_name("attr-7.erofs")
    other.write_bytes(b"of another one")
    assert module.ensure().action == "built"
    assert images(module) == [image]
    module.assert_equal()


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


SYMLINKS = [1, 2, *range(30, 36), *range(2000, 2100), *range(4020, 4096)]
CHUNKS = 8 << 40
"""The largest size of one chunk."""
SIZES = [0, 1, CHUNKS - 1, CHUNKS, CHUNKS + 1, 1008 * CHUNKS, 1009 * CHUNKS, (1 << 63) - 1]


@pytest.mark.parametrize(
    "tree",
    [
        tree_of(*(directory(b"d%05d" % number, number) for number in range(20_000))),
        tree_of(*(Symlink(RelPath(b"%d" % size), b"x" * size, size) for size in SYMLINKS)),
        tree_of(*(file(b"%d" % size, size) for size in SIZES), *files(b"", 100)),
    ],
    ids=["many directories", "symlinks of each length near an edge", "many chunks"],
)
def test_numbers_near_an_edge(tree: Tree, tmp_path: Path) -> None:
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
        client, builder = (os.open(top, os.O_RDONLY | os.O_DIRECTORY) for _ in range(2))
        fcntl.flock(client, fcntl.LOCK_SH)
        with pytest.raises(BlockingIOError):
            fcntl.flock(builder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(client)
        fcntl.flock(builder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(builder)


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


def prove(tree: Tree) -> None:
    with TemporaryDirectory() as folder, mounted(tree, Path(folder)) as top:
        listing = read_listing(top)
        expected = expected_listing(tree)
        assert listing.keys() == expected.keys()
        for path, facts in expected.items():
            assert listing[path] == facts, path
            if facts.size is None and path:
                own, above = os.stat(top + path).st_ino, os.stat(top + parent(path)).st_ino
                assert dots(top + path) == {b".": own, b"..": above}
        root = os.stat(top).st_ino
        assert dots(top) == {b".": root, b"..": root}
        assert ROOT in listing


@given(tree=trees())
def test_extreme_attributes_and_odd_names(tree: Tree) -> None:
    prove(tree)


@settings(max_examples=20)
@given(random=RANDOMS)
def test_crowded_and_nested_trees(random: Random) -> None:
    prove(random_tree(random, random.choice([10, 300, 2000])))
