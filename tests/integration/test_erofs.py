"""EROFS images by the eyes of the kernel, and images that lie on the disk already."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_server.config.tables import ModuleFallback
from huai_server.fallback.erofs.image import image_damage
from huai_server.fallback.owners import OwnerIds
from tests.support.attr_trees import Fallback, list_entries
from tests.support.mounting import needs_mounts

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


def test_an_image_that_is_there_is_mounted_again(module: Fallback) -> None:
    module.write("f", "x")
    module.commit()
    module.ensure()
    (image,) = images(module)
    inode = image.stat().st_ino
    # As after a restart of the machine: the folder in memory is gone, the image is not.
    subprocess.run(["umount", module.attr.generations / "1"], check=True, timeout=30)
    (module.attr.generations / "1").rmdir()
    module.attr.state.unlink()
    module.attr.tree.unlink()
    assert module.ensure().action == "built"
    assert [each.stat().st_ino for each in images(module)] == [inode]
    module.assert_equal()


def test_a_damaged_image_is_never_mounted(module: Fallback) -> None:
    module.write("f", "x")
    module.commit()
    module.ensure()
    subprocess.run(["umount", module.attr.generations / "1"], check=True, timeout=30)
    (module.attr.generations / "1").rmdir()
    module.attr.tree.unlink()
    (image,) = images(module)
    data = bytearray(image.read_bytes())
    for place in (1200, len(data) // 2, len(data) - 4096):
        broken = data.copy()
        broken[place] ^= 1
        image.write_bytes(broken)
        tree = bytes.fromhex(image.stem.split("-")[2])
        assert image_damage(image, tree, OwnerIds())
    assert module.ensure().action == "built"
    module.assert_equal()
