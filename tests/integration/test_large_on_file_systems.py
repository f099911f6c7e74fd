"""Large files and copies on other file systems, which xfsprogs and e2fsprogs make.

On xfs files share blocks, on ext2 no room can be reserved; a small tmpfs is full.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_client.diff.candidate import Reuse
from huai_client.transfer.local import LocalContent, Reused, ReusePolicy
from huai_client.tree.errors import StorageError
from tests.integration.test_large_files import (
    BLOCK,
    SCATTERED,
    blocks,
    disk_bytes,
    image,
    over_http,
    update,
    upstream,
    web_server,
)
from tests.support.local_trees import content
from tests.support.mounting import needs_mounts
from tests.support.nginx import Nginx
from tests.support.reflinks import is_shared, shares_blocks
from tests.support.staged import ready
from tests.support.upstream import Site, Upstream, assert_equal, site
from tests.unit.client.transfer.test_local import COPY, EVER, NEVER, NEW, OLD, SIZE, Ground

__all__ = ["upstream", "web_server"]
pytestmark = needs_mounts

SECONDS = 60
HOLES = blocks(0, 1) + bytes(15 * BLOCK) + blocks(16)


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True, timeout=SECONDS)


@pytest.fixture(params=["xfs", "ext2"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def disk(kind: str, short_path: Path) -> Iterator[Path]:
    """Mount a new file system."""
    point, image = short_path / kind, short_path / "image"
    point.mkdir()
    if kind == "tmpfs":
        run("mount", "-t", kind, "-o", "size=64k", kind, point)
    else:
        image.touch()
        os.truncate(image, 512 << 20)
        run(f"mkfs.{kind}", "-q", image)
        run("mount", "-t", kind, "-o", "loop", image, point)
    yield point
    run("umount", "--lazy", point)


@pytest.fixture
def place(disk: Path) -> Iterator[Site]:
    with site(disk / "site") as place:
        yield place


@pytest.mark.parametrize("in_place", [True, False])
def test_a_file_is_changed(
    up: Upstream, web: Nginx, place: Site, kind: str, in_place: bool
) -> None:
    down = over_http(up, place, web, **({"in_place": ["*.img"]} if in_place else {}))
    assert shares_blocks(down.dest) == (kind == "xfs")
    for new in (SCATTERED, HOLES):
        before = image(down).stat()
        assert update(up, down, new) < len(new)
        assert (image(down).stat().st_ino == before.st_ino) == (in_place and kind == "ext2")
        assert_equal(up, down)
    assert kind == "ext2" or disk_bytes(down) < 7 * BLOCK


@pytest.fixture
def ground(disk: Path) -> Iterator[Ground]:
    (disk / "tree").mkdir()
    ground = Ground(disk / "tree")
    yield ground
    ground.close()


def copy(ground: Ground, reuse: Reuse, until: int) -> Reused:
    with LocalContent(ground.tree, ground.staging, ReusePolicy(until, hardlink=False)) as local:
        local.stage_local([NEW], {NEW.path: reuse})
        return local.reused()


@pytest.mark.parametrize("kind", ["xfs"])
def test_a_clone_is_read_if_its_source_is_not_trusted(ground: Ground) -> None:
    ground.write(content(b"something else", SIZE))
    for reuse, until in ((COPY._replace(sure=False), EVER), (COPY, NEVER)):
        assert copy(ground, reuse, until) == Reused()
        assert not ground.staging.ready(NEW)
    ground.write(content(OLD.path, SIZE))
    assert copy(ground, COPY._replace(sure=False), EVER) == Reused(cloned=1, bytes=SIZE)
    staged = ready(ground.staging, NEW)
    assert is_shared(staged)
    assert staged.read_bytes() == content(OLD.path, SIZE)


@pytest.mark.parametrize("kind", ["tmpfs"])
def test_a_full_disk_ends_the_copies(ground: Ground) -> None:
    with pytest.raises(OSError, match="No space"), (ground.dest / "fills").open("wb") as file:
        file.write(bytes(64 << 10))
    with pytest.raises(StorageError, match="new: No space left"):
        copy(ground, COPY, EVER)
    assert not ground.staging.ready(NEW)
    (ground.dest / "fills").unlink()
    assert copy(ground, COPY, EVER) == Reused(copied=1, bytes=SIZE)
