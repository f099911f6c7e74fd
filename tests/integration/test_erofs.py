"""EROFS images by the eyes of the kernel, and images of an earlier run."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_server.config.tables import ModuleFallback
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
