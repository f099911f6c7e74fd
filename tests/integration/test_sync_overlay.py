"""DEST on an overlay, with directories of a lower layer: rename(2) refuses those."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mounting import needs_mounts
from tests.support.upstream import Pair, Site, assert_equal, site

pytestmark = needs_mounts

SECONDS = 30


@pytest.fixture
def place(short_path: Path) -> Iterator[Site]:
    with site(short_path) as place:
        yield place


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *arguments], check=True, timeout=SECONDS)


@pytest.fixture
def overlay(place: Site, tmp_path: Path) -> Iterator[Pair]:
    """A synced tree, and from now on an overlay above it."""
    up = place.upstream()
    up.many(b"old/deep/er", 200)
    up.many(b"old", 3)
    up.at(b"old/empty").mkdir()
    up.at(b"old/deep").chmod(0o555)
    up.put(b"stays", b"1")
    down = place.synced_downstream(up)
    # An overlay cannot have another one as its upper layer, and /tmp may be on one.
    memory = tmp_path / "memory"
    memory.mkdir()
    mount("-t", "tmpfs", "tmpfs", memory)
    (memory / "upper").mkdir()
    (memory / "work").mkdir()
    layers = f"lowerdir={down.dest},upperdir={memory}/upper,workdir={memory}/work"
    mount("-t", "overlay", "-o", f"{layers},redirect_dir=off", "overlay", down.dest)
    yield up, down
    for point in (down.dest, memory):
        subprocess.run(["umount", "--lazy", point], check=True, timeout=SECONDS)


def test_a_directory_of_a_lower_layer_is_moved_entry_by_entry(overlay: Pair) -> None:
    up, down = overlay
    with pytest.raises(OSError, match="cross-device"):
        (down.dest / "old").rename(down.dest / "new")
    up.at(b"old").rename(up.at(b"new"))
    up.put(b"stays", b"22")
    up.commit()
    assert ("move", "new") in down.plan()
    result = down.synced()
    assert result["summary"]["fetches"] == 1
    assert_equal(up, down)
    assert down.verify("--content").code == 0
    assert down.sync().code == 0


def test_so_is_one_whose_old_path_stays_for_a_while(overlay: Pair) -> None:
    up, down = overlay
    down.configure(delete_after="1h")
    up.at(b"old").rename(up.at(b"new"))
    up.commit()
    down.synced()
    assert (down.dest / "old").readlink() == Path("new")
    assert down.verify("--content").code == 0
    down.configure(delete_after="0")
    down.synced()
    assert_equal(up, down)


def test_so_is_one_that_leaves_a_symlink_behind(overlay: Pair) -> None:
    up, down = overlay
    up.at(b"old").rename(up.at(b"new"))
    up.at(b"old").symlink_to("new")
    up.commit()
    down.synced()
    assert_equal(up, down)
