"""Large files are brought up to date from the blocks that their older versions hold."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from blake3 import blake3

from huai_client.config.load import RankedUrl
from huai_native._native import BlockIndex
from huai_server.config.load import add_module
from huai_server.config.tables import Module
from huai_server.store.block_indices import block_index_path
from tests.support.nginx import Nginx, nginx
from tests.support.reflinks import shares_blocks
from tests.support.upstream import T0, Downstream, Site, Upstream, assert_equal, serving

BLOCK = 64 << 10
SIZE = 20 * BLOCK + 4321
INDEXED = 256 << 10
"""The least bytes of a file with an index here."""
LATER = T0 + 10**9
NAME = b"images/disk.img"
TODAY, YESTERDAY = b"daily/disk-20261121.img", b"daily/disk-20261120.img"
CONTENT = os.urandom(SIZE)


def blocks(begin: int, end: int = 21) -> bytes:
    return CONTENT[begin * BLOCK : end * BLOCK]


SWAPPED = blocks(1, 2) + blocks(0, 1) + blocks(2)
SCATTERED = b"".join(
    os.urandom(BLOCK) if number in (3, 4, 9, 20) else blocks(number, number + 1)
    for number in range(21)
)[:SIZE]


@pytest.fixture(name="up")
def upstream(place: Site) -> Upstream:
    up = place.upstream(block_index=INDEXED)
    up.many(b"stays", 5)
    up.put(NAME, CONTENT)
    up.put(b"small", CONTENT[: INDEXED - 1])
    return up


@pytest.fixture(name="down")
def downstream(up: Upstream, place: Site) -> Downstream:
    return place.synced_downstream(up)


@pytest.fixture(name="web")
def web_server(up: Upstream) -> Iterator[Nginx]:
    with nginx(up.tree.parent) as server:
        yield server


def over_http(up: Upstream, place: Site, web: Nginx, **settings: Any) -> Downstream:
    return place.synced_downstream(up, content_urls=(f"{web.url}/{up.name}",), **settings)


def commit_image(up: Upstream, content: bytes) -> None:
    up.put(NAME, content, mtime=LATER)
    up.commit()


def put_sparse(up: Upstream, size: int, mtime: int = T0) -> None:
    """Write two blocks, and a hole up to `size` bytes."""
    file = up.put(NAME, blocks(0, 2))
    os.truncate(file, size)
    os.utime(file, ns=(mtime, mtime))


def sync(down: Downstream, up: Upstream) -> int:
    """Return the bytes that a sync transfers; its result is checked, whatever it says."""
    result = down.synced()
    assert_equal(up, down)
    if result["received"] == 0:
        assert result["reused"]["files"] == 1
        assert result["reused"]["bytes"] == up.at(NAME).stat().st_size
    return int(result["received"])


def update(up: Upstream, down: Downstream, content: bytes) -> int:
    commit_image(up, content)
    return sync(down, up)


def index_file(up: Upstream, content: bytes) -> Path:
    return block_index_path(up.places.repository, blake3(content).digest())


def image(down: Downstream) -> Path:
    return down.dest / os.fsdecode(NAME)


def disk_bytes(down: Downstream) -> int:
    return image(down).stat().st_blocks * 512


def ranges(web: Nginx) -> list[str]:
    """Return the ranges of the image that were sent."""
    return [line.split('"')[1] for line in web.requests if NAME.decode() in line]


def range_headers(*begins_and_ends: tuple[int, int]) -> set[str]:
    return {f"bytes={begin}-{end - 1}" for begin, end in begins_and_ends}


def wait_for_another_second(down: Downstream) -> None:
    """Wait for the clock to show more than the time and the tolerance that a sync recorded."""
    while time.time() < down.state.time + 2:
        time.sleep(0.1)


def test_large_files_have_an_index_and_others_have_none(up: Upstream, place: Site) -> None:
    up.commit()
    path = index_file(up, CONTENT)
    index = BlockIndex.decode(path.read_bytes(), SIZE, blake3(CONTENT).digest())
    assert index.block_size == BLOCK
    assert not index_file(up, CONTENT[: INDEXED - 1]).exists()
    assert path.stat().st_mode & 0o777 == 0o444
    url = f"{place.url}/git/{up.name}.git/blocks"
    response = httpx.get(f"{url}/{path.name[:2]}/{path.name}")
    assert response.status_code == 200
    assert response.content == path.read_bytes()
    assert "immutable" in response.headers["cache-control"]
    other = path.name[:-1] + ("1" if path.name.endswith("0") else "0")
    for wrong in (f"zz/{path.name}", f"{path.name[:2]}/{other}", "looked"):
        assert httpx.get(f"{url}/{wrong}").status_code == 404
    assert httpx.post(f"{url}/{path.name[:2]}/{path.name}").status_code == 405


def test_present_blocks_are_not_transferred(up: Upstream, down: Downstream) -> None:
    assert update(up, down, blocks(10, 20) + blocks(0, 10)) == 0
    update(up, down, CONTENT)  # a last block that is not full is found at its place only
    assert update(up, down, blocks(1, 5) + bytes(10 * BLOCK) + blocks(15, 20) * 2) == 0
    update(up, down, CONTENT)
    assert update(up, down, blocks(0, 4) + bytes(12 * BLOCK) + blocks(16)) == 0
    assert disk_bytes(down) < 14 * BLOCK
    assert 0 < update(up, down, blocks(0, 3) + os.urandom(BLOCK) + blocks(4)) < SIZE


def test_holes_of_the_older_version_stay_holes(up: Upstream, place: Site) -> None:
    put_sparse(up, 20 * BLOCK)
    down = place.synced_downstream(up)
    content = blocks(0, 2) + bytes(16 * BLOCK) + blocks(0, 1) + bytes(BLOCK)
    assert update(up, down, content) == 0
    assert disk_bytes(down) < 6 * BLOCK


def test_only_changed_blocks_are_requested(up: Upstream, web: Nginx, place: Site) -> None:
    down = over_http(up, place, web)
    before = len(ranges(web))
    assert 3 * BLOCK < update(up, down, SCATTERED) < 4 * BLOCK
    assert {*ranges(web)[before:]} == range_headers(
        (3 * BLOCK, 5 * BLOCK), (9 * BLOCK, 10 * BLOCK), (20 * BLOCK, SIZE)
    )


@pytest.mark.parametrize("settings", [{"reuse_check": "digest"}, {}])
def test_an_old_file_that_is_not_believed_is_read(
    up: Upstream, web: Nginx, place: Site, settings: dict[str, str]
) -> None:
    down = over_http(up, place, web, **settings)
    if not settings:  # its index is lost instead
        index_file(up, CONTENT).unlink()
    assert update(up, down, SCATTERED) < 4 * BLOCK


def test_an_edited_file_costs_the_edited_blocks(up: Upstream, web: Nginx, place: Site) -> None:
    down = over_http(up, place, web)
    wait_for_another_second(down)
    with image(down).open("r+b") as file:
        file.seek(7 * BLOCK)
        file.write(b"edited")
    os.utime(image(down), ns=(T0, T0))
    assert 4 * BLOCK < update(up, down, SCATTERED) < 5 * BLOCK


def test_a_sparse_file_over_http(up: Upstream, web: Nginx, place: Site) -> None:
    put_sparse(up, 1 << 30)
    up.commit()
    down = place.downstream(up, content_urls=(f"{web.url}/{up.name}",))
    assert sync(down, up) < 8 * BLOCK
    assert disk_bytes(down) < 10 * BLOCK
    put_sparse(up, (1 << 30) + 5, LATER)
    up.commit()
    assert sync(down, up) < 4 * BLOCK
    assert disk_bytes(down) < 10 * BLOCK


def test_a_file_of_several_mirrors(up: Upstream, web: Nginx, place: Site, tmp_path: Path) -> None:
    """The second mirror is asked for the blocks that the first one does not have."""
    down = over_http(up, place, web)
    stale = tmp_path / up.name / os.fsdecode(NAME)
    stale.parent.mkdir(parents=True)
    stale.write_bytes(blocks(0, 4) + SCATTERED[4 * BLOCK : 10 * BLOCK] + os.urandom(SIZE))
    os.truncate(stale, SIZE)
    with nginx(tmp_path) as first:
        urls = (f"{first.url}/{up.name}", RankedUrl(f"{web.url}/{up.name}", priority=2))
        down.configure(content_urls=urls)
        before = len(ranges(web))
        commit_image(up, SCATTERED)
        ended = down.sync()
        assert ranges(first)
    assert ended.code == 0, ended
    assert "wrong content" in ended.err
    assert_equal(up, down)
    wrong = range_headers((3 * BLOCK, 4 * BLOCK), (20 * BLOCK, SIZE))
    possible = wrong | range_headers((9 * BLOCK, 10 * BLOCK))
    assert wrong <= {*ranges(web)[before:]} <= possible


@pytest.mark.parametrize("content", [SCATTERED, SCATTERED[: 7 * BLOCK + 1], SCATTERED * 2])
def test_a_file_is_changed_in_place(up: Upstream, web: Nginx, place: Site, content: bytes) -> None:
    down = over_http(up, place, web, in_place=["*.img"])
    before, small = image(down).stat(), (down.dest / "small").stat()
    with image(down).open("rb") as reader:
        assert update(up, down, content) < len(content)
        assert (reader.read() == content) != shares_blocks(down.dest)
    assert (image(down).stat().st_ino == before.st_ino) != shares_blocks(down.dest)
    assert image(down).stat().st_nlink == 1
    assert (down.dest / "small").stat().st_ctime_ns == small.st_ctime_ns


def test_a_busy_program_does_not_keep_other_files_back(
    up: Upstream, web: Nginx, place: Site
) -> None:
    program = Path(shutil.which("sleep") or "").read_bytes() + CONTENT
    up.put(NAME, program, mode=0o755)
    down = over_http(up, place, web, in_place=["*.img"])
    up.put(b"small", b"new", mtime=LATER)
    commit_image(up, program + b"more")
    running = subprocess.Popen([image(down), "600"])
    try:
        ended = down.sync()
    finally:
        running.kill()
        running.wait()
    if not shares_blocks(down.dest):
        assert ended.code == 23, ended
        assert "images/disk.img: Text file busy" in ended.err
        assert image(down).read_bytes() == program
    assert (down.dest / "small").read_bytes() == b"new"
    down.synced()
    assert_equal(up, down)


@pytest.mark.parametrize("reason", ["trash", "two names", "another pattern"])
def test_other_files_are_replaced(up: Upstream, web: Nginx, place: Site, reason: str) -> None:
    if reason == "two names":
        up.at(b"images/second").hardlink_to(up.at(NAME))
    patterns = ["/*.img"] if reason == "another pattern" else ["*.img"]
    down = over_http(up, place, web, in_place=patterns, trash="1d" if reason == "trash" else "0")
    with image(down).open("rb") as reader:
        up.at(NAME).unlink()
        commit_image(up, SCATTERED)
        assert down.synced()["received"] < SIZE
        assert reader.read() == CONTENT
    assert image(down).read_bytes() == SCATTERED


@pytest.mark.parametrize("in_place", [[], ["/images/"]])
def test_blocks_at_any_other_place_are_not_transferred(
    up: Upstream, web: Nginx, place: Site, in_place: list[str]
) -> None:
    down = over_http(up, place, web, in_place=in_place)
    assert update(up, down, blocks(0, 1) + bytes(15 * BLOCK) + blocks(16)) == 0
    assert disk_bytes(down) < 7 * BLOCK
    update(up, down, CONTENT)
    assert update(up, down, blocks(0, 2) + b"come" + blocks(2)) < 3 * BLOCK
    update(up, down, CONTENT)
    with image(down).open("rb") as reader:  # without a block in its place it is replaced
        assert update(up, down, b"come" + CONTENT) < 3 * BLOCK
        assert reader.read() == CONTENT


@pytest.mark.parametrize("stays", [True, False])
def test_a_new_issue_is_compared_with_the_one_before(
    up: Upstream, web: Nginx, place: Site, *, stays: bool
) -> None:
    up.put(YESTERDAY, CONTENT)
    up.put(b"daily/disk-20261101.img", os.urandom(SIZE))
    up.put(b"daily/other-20261120.img", os.urandom(SIZE))
    down, by_rsync = over_http(up, place, web), place.synced_downstream(up)
    before = len(web.requests)
    up.put(TODAY, SCATTERED, mtime=LATER)
    if not stays:
        up.at(YESTERDAY).unlink()
    up.commit()
    assert sync(down, up) < 4 * BLOCK
    assert len(web.requests) == before + 3
    if stays:  # a new issue of the same blocks needs no web server
        up.put(TODAY, SWAPPED)
        up.commit()
        assert sync(by_rsync, up) == 0


def test_many_large_files_share_connections(up: Upstream, web: Nginx, place: Site) -> None:
    names = [b"images/%d" % number for number in range(12)]
    for name in names:
        up.put(name, CONTENT)
    down = over_http(up, place, web)
    for name in names:
        up.put(name, SCATTERED + name, mtime=LATER)
    before = len(web.connections)
    assert update(up, down, SCATTERED) < 13 * 5 * BLOCK
    connections = web.connections[before:]
    assert len(connections) >= 13 * 3
    assert len({*connections}) <= 8


def test_content_from_other_servers(up: Upstream, web: Nginx, place: Site) -> None:
    up.change(serve_content=True)
    with nginx(up.tree.parent, location="max_ranges 0;") as rangeless:
        for urls, least, most in (
            ([f"{place.url}/content/{up.name}"], 0, 4 * BLOCK),
            # Blocks come by HTTP although rsync is named first.
            ([f"{place.content_url}/{up.name}", f"{web.url}/{up.name}"], 0, 4 * BLOCK),
            ([f"{rangeless.url}/{up.name}"], SIZE, 2 * SIZE),
        ):
            up.put(NAME, CONTENT)
            down, before = place.synced_downstream(up, content_urls=urls), len(ranges(web))
            assert least <= update(up, down, SCATTERED) < most
            assert len(ranges(web)) - before == (3 if len(urls) > 1 else 0)


@pytest.mark.parametrize("owner", [CONTENT, SWAPPED], ids=["old", "new"])
@pytest.mark.parametrize("index", [bytes(21 * 36), None])
def test_an_index_that_is_wrong_or_gone_costs_a_transfer(
    up: Upstream, down: Downstream, owner: bytes, index: bytes | None
) -> None:
    commit_image(up, SWAPPED)
    path = index_file(up, owner)
    path.unlink()
    if index is not None:
        path.write_bytes(index)
    ended = down.sync()
    assert ended.code == 0, ended
    assert ("block index" in ended.err) == (index is not None)
    assert_equal(up, down)


@pytest.mark.parametrize("alone", [True, False])
def test_a_relay_without_indices(
    up: Upstream, web: Nginx, place: Site, tmp_path: Path, *, alone: bool
) -> None:
    """The next metadata URL has them; without one, the file comes whole."""
    copy = tmp_path / "modules" / up.name / "repository.git"
    up.commit()
    subprocess.run(["git", "clone", "-q", "--mirror", up.places.repository, copy], check=True)
    (tmp_path / "tree").mkdir()
    module = Module(path=str(tmp_path / "tree"), content_urls=("rsync://tier1.example/tree",))
    add_module(tmp_path, up.name, module)
    with serving(tmp_path) as (_, relay):
        down = over_http(up, place, web, url=relay if alone else (relay, place.url))
        commit_image(up, SCATTERED)
        subprocess.run(["git", "-C", copy, "fetch", "-q", "origin"], check=True)
        ended = down.sync("--json")
    assert (ended.code, ended.err) == (0, "")
    assert_equal(up, down)
    assert (ended.events("sync")[0]["received"] >= 4 * BLOCK) == alone


def test_without_indices_the_file_is_transferred(up: Upstream, place: Site) -> None:
    up.change(block_index=0)
    down = place.synced_downstream(up)
    assert update(up, down, SWAPPED) > 0
    assert not index_file(up, SWAPPED).exists()
