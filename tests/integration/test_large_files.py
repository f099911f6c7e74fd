"""Large files are brought up to date from what their older versions hold."""

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

from huai_client.config.content_place import ContentPlace
from huai_native._native import BlockIndex
from huai_server.config.load import add_module
from huai_server.config.tables import Module
from huai_server.store.block_indices import block_index_path
from tests.support.nginx import Nginx, nginx
from tests.support.reflinks import shares_blocks
from tests.support.upstream import T0, Downstream, Site, Upstream, assert_equal, serving

BLOCK = 64 << 10
SIZE = 20 * BLOCK + 4321
FROM = 256 << 10
"""Bytes from which on there are indices here."""
LATER = T0 + 10**9
NAME = b"images/disk.img"
CONTENT = os.urandom(SIZE)


@pytest.fixture(name="up")
def upstream(place: Site) -> Upstream:
    up = place.upstream(block_index=FROM)
    up.many(b"stays", 5)
    up.put(NAME, CONTENT)
    up.put(b"small", CONTENT[: FROM - 1])
    return up


@pytest.fixture(name="down")
def downstream(up: Upstream, place: Site) -> Downstream:
    return place.synced_downstream(up)


def changed(up: Upstream, content: bytes) -> None:
    up.put(NAME, content, mtime=LATER)
    up.commit()


def index_file(up: Upstream, content: bytes) -> Path:
    return block_index_path(up.places.repository, blake3(content).digest())


def received(down: Downstream, up: Upstream) -> int:
    """Bytes that a sync transfers, whatever it says is checked."""
    result = down.synced()
    assert_equal(up, down)
    if result["received"] == 0:
        assert result["reused"]["files"] == 1
        assert result["reused"]["bytes"] == up.at(NAME).stat().st_size
    return int(result["received"])


def test_large_files_have_an_index_and_others_have_none(up: Upstream) -> None:
    up.commit()
    digest = blake3(CONTENT).digest()
    index = BlockIndex.decode(index_file(up, CONTENT).read_bytes(), SIZE, digest)
    assert index.block_size == BLOCK
    assert not index_file(up, CONTENT[: FROM - 1]).exists()
    assert os.stat(index_file(up, CONTENT)).st_mode & 0o777 == 0o444


@pytest.mark.parametrize(
    "content",
    [
        CONTENT[10 * BLOCK : 20 * BLOCK] + CONTENT[: 10 * BLOCK] + CONTENT[20 * BLOCK :],
        CONTENT[: 8 * BLOCK],
        CONTENT[BLOCK : 20 * BLOCK] + CONTENT[20 * BLOCK :],
        CONTENT[: 5 * BLOCK] + bytes(10 * BLOCK) + CONTENT[15 * BLOCK :],
        CONTENT[: 20 * BLOCK] * 2 + CONTENT[20 * BLOCK :],
    ],
    ids=["swapped", "truncated", "without-its-beginning", "with-zeros", "doubled"],
)
def test_what_is_here_is_not_transferred(up: Upstream, down: Downstream, content: bytes) -> None:
    if len(content) % BLOCK:  # a last block that is not full is found at its place only
        content = content[: len(content) // BLOCK * BLOCK]
    changed(up, content)
    assert received(down, up) == 0


def test_zeros_become_holes(up: Upstream, down: Downstream) -> None:
    changed(up, CONTENT[: 4 * BLOCK] + bytes(12 * BLOCK) + CONTENT[16 * BLOCK :])
    assert received(down, up) == 0
    assert (down.dest / os.fsdecode(NAME)).stat().st_blocks * 512 < 14 * BLOCK


def test_holes_of_the_older_version_stay_holes(up: Upstream, place: Site) -> None:
    file = up.put(NAME, CONTENT[: 2 * BLOCK])
    os.truncate(file, 20 * BLOCK)
    os.utime(file, ns=(T0, T0))
    down = place.synced_downstream(up)
    with file.open("r+b") as image:
        image.seek(18 * BLOCK)
        image.write(CONTENT[:BLOCK])
    os.utime(file, ns=(LATER, LATER))
    up.commit()
    assert received(down, up) == 0
    assert (down.dest / os.fsdecode(NAME)).stat().st_blocks * 512 < 6 * BLOCK


def test_a_block_that_nobody_has_is_transferred(up: Upstream, down: Downstream) -> None:
    changed(up, CONTENT[: 3 * BLOCK] + os.urandom(BLOCK) + CONTENT[4 * BLOCK :])
    assert 0 < received(down, up) < SIZE


def test_a_file_that_somebody_edited_is_not_believed(up: Upstream, down: Downstream) -> None:
    place = down.dest / os.fsdecode(NAME)
    with place.open("r+b") as file:
        file.write(b"edited")
    os.utime(place, ns=(T0, T0))
    # After the sync by the clock, which counts in seconds there.
    wait_for_another_second(down)
    os.chmod(place, place.stat().st_mode)
    changed(up, CONTENT[:BLOCK] * 2 + CONTENT[2 * BLOCK :])
    assert received(down, up) > 0


def wait_for_another_second(down: Downstream) -> None:
    """Until the clock shows more than what the last sync recorded and the step it allows."""
    while time.time() < down.state.time + 2:
        time.sleep(0.1)


@pytest.fixture(name="web")
def web_server(up: Upstream) -> Iterator[Nginx]:
    with nginx(up.tree.parent) as running:
        yield running


def over_http(up: Upstream, place: Site, *servers: Nginx, **settings: Any) -> Downstream:
    urls = tuple(f"{each.url}/{up.name}" for each in servers)
    return place.synced_downstream(up, content_urls=urls, **settings)


def asked(web: Nginx) -> list[str]:
    """The ranges of the image that were sent."""
    return [line.split('"')[1] for line in web.requests if NAME.decode() in line]


SCATTERED = b"".join(
    os.urandom(BLOCK) if number in (3, 4, 9, 20) else CONTENT[number * BLOCK : (number + 1) * BLOCK]
    for number in range(21)
)[:SIZE]


def test_only_changed_blocks_are_asked_for(up: Upstream, web: Nginx, place: Site) -> None:
    down = over_http(up, place, web)
    before = len(asked(web))
    changed(up, SCATTERED)
    assert 3 * BLOCK < received(down, up) < 4 * BLOCK
    ranges = {(3 * BLOCK, 5 * BLOCK), (9 * BLOCK, 10 * BLOCK), (20 * BLOCK, SIZE)}
    assert {*asked(web)[before:]} == {f"bytes={begin}-{end - 1}" for begin, end in ranges}


@pytest.mark.parametrize("settings", [{"reuse_check": "digest"}, {}])
def test_an_old_file_that_is_not_believed_is_read(
    up: Upstream, web: Nginx, place: Site, settings: dict[str, str]
) -> None:
    down = over_http(up, place, web, **settings)
    if not settings:  # its index is lost instead
        index_file(up, CONTENT).unlink()
    changed(up, SCATTERED)
    assert received(down, up) < 4 * BLOCK


def test_an_edited_file_costs_the_blocks_that_were_edited(
    up: Upstream, web: Nginx, place: Site
) -> None:
    down = over_http(up, place, web)
    wait_for_another_second(down)
    with (down.dest / os.fsdecode(NAME)).open("r+b") as file:
        file.seek(7 * BLOCK)
        file.write(b"edited")
    os.utime(down.dest / os.fsdecode(NAME), ns=(T0, T0))
    changed(up, SCATTERED)
    assert 4 * BLOCK < received(down, up) < 5 * BLOCK


def test_a_larger_file_in_larger_blocks(up: Upstream, web: Nginx, place: Site) -> None:
    file = up.put(NAME, CONTENT[: 2 * BLOCK])
    os.truncate(file, 1 << 30)
    os.utime(file, ns=(T0, T0))
    down = over_http(up, place, web)
    os.truncate(file, (1 << 30) + 5)
    os.utime(file, ns=(LATER, LATER))
    up.commit()
    assert received(down, up) < 4 * BLOCK
    assert (down.dest / os.fsdecode(NAME)).stat().st_blocks * 512 < 10 * BLOCK


def test_a_new_image_with_holes(up: Upstream, web: Nginx, place: Site) -> None:
    file = up.put(NAME, CONTENT[: 2 * BLOCK])
    os.truncate(file, 200 << 20)
    os.utime(file, ns=(T0, T0))
    up.commit()
    down = place.downstream(up, content_urls=(f"{web.url}/{up.name}",))
    assert received(down, up) < 8 * BLOCK
    assert (down.dest / os.fsdecode(NAME)).stat().st_blocks * 512 < 10 * BLOCK


def test_a_file_of_several_mirrors(up: Upstream, web: Nginx, place: Site, tmp_path: Path) -> None:
    """What the first one has is taken from there, and the rest from the other."""
    down = over_http(up, place, web)
    stale = tmp_path / up.name / os.fsdecode(NAME)
    stale.parent.mkdir(parents=True)
    stale.write_bytes(CONTENT[: 4 * BLOCK] + SCATTERED[4 * BLOCK : 10 * BLOCK] + os.urandom(SIZE))
    os.truncate(stale, SIZE)
    with nginx(tmp_path) as other:
        urls = (f"{other.url}/{up.name}", ContentPlace(f"{web.url}/{up.name}", priority=2))
        down.configure(content_urls=urls)
        before = len(asked(web))
        changed(up, SCATTERED)
        ended = down.sync()
        assert asked(other)
    assert ended.code == 0, ended
    assert "holds something else" in ended.err
    assert_equal(up, down)
    wrong = {(3 * BLOCK, 4 * BLOCK), (20 * BLOCK, SIZE)}
    others = {f"bytes={begin}-{end - 1}" for begin, end in [*wrong, (9 * BLOCK, 10 * BLOCK)]}
    found = {*asked(web)[before:]}
    assert {f"bytes={begin}-{end - 1}" for begin, end in wrong} <= found <= others


def reflinks(down: Downstream) -> bool:
    return shares_blocks(down.dest)


def image(down: Downstream) -> Path:
    return down.dest / os.fsdecode(NAME)


@pytest.mark.parametrize("content", [SCATTERED, SCATTERED[: 7 * BLOCK + 1], SCATTERED * 2])
def test_a_file_is_changed_where_it_stands(
    up: Upstream, web: Nginx, place: Site, content: bytes
) -> None:
    down = over_http(up, place, web, in_place=["*.img"])
    before, others = image(down).stat(), (down.dest / "small").stat()
    with image(down).open("rb") as reader:
        changed(up, content)
        assert received(down, up) < len(content)
        assert (reader.read() == content) != reflinks(down)
    assert (image(down).stat().st_ino == before.st_ino) != reflinks(down)
    assert image(down).stat().st_nlink == 1
    assert (down.dest / "small").stat().st_ctime_ns == others.st_ctime_ns


def test_one_that_cannot_be_opened_for_the_change_keeps_no_other_back(
    up: Upstream, web: Nginx, place: Site
) -> None:
    program = Path(shutil.which("sleep") or "").read_bytes() + CONTENT
    up.put(NAME, program, mode=0o755)
    down = over_http(up, place, web, in_place=["*.img"])
    up.put(b"small", b"new", mtime=LATER)
    changed(up, program + b"more")
    running = subprocess.Popen([image(down), "600"])
    try:
        ended = down.sync()
    finally:
        running.kill()
        running.wait()
    if not reflinks(down):
        assert ended.code == 23, ended
        assert "images/disk.img: Text file busy" in ended.err
        assert image(down).read_bytes() == program
    assert (down.dest / "small").read_bytes() == b"new"
    down.synced()
    assert_equal(up, down)


def test_zeros_become_holes_in_place_too(up: Upstream, web: Nginx, place: Site) -> None:
    down = over_http(up, place, web, in_place=["/images/"])
    changed(up, CONTENT[:BLOCK] + bytes(15 * BLOCK) + CONTENT[16 * BLOCK :])
    assert received(down, up) == 0
    assert image(down).stat().st_blocks * 512 < 7 * BLOCK


@pytest.mark.parametrize("why", ["trash", "two names", "another pattern"])
def test_other_files_are_replaced(up: Upstream, web: Nginx, place: Site, why: str) -> None:
    if why == "two names":
        up.at(b"images/second").hardlink_to(up.at(NAME))
    patterns = ["/*.img"] if why == "another pattern" else ["*.img"]
    down = over_http(up, place, web, in_place=patterns, trash="1d" if why == "trash" else "0")
    with image(down).open("rb") as reader:
        up.at(NAME).unlink()
        changed(up, SCATTERED)
        assert down.synced()["received"] < SIZE
        assert reader.read() == CONTENT
    assert image(down).read_bytes() == SCATTERED


@pytest.mark.parametrize(
    "content",
    [b"come" + CONTENT, CONTENT[4097:], CONTENT[: BLOCK * 2] + b"come" + CONTENT[BLOCK * 2 :]],
    ids=["put-in", "taken-out", "put-in-later"],
)
def test_what_is_here_at_any_other_place_is_not_transferred(
    up: Upstream, web: Nginx, place: Site, content: bytes
) -> None:
    down = over_http(up, place, web)
    changed(up, content)
    assert received(down, up) < 3 * BLOCK


def test_a_file_of_which_nothing_stays_is_not_changed_in_place(
    up: Upstream, web: Nginx, place: Site
) -> None:
    down = over_http(up, place, web, in_place=["*.img"])
    with image(down).open("rb") as reader:
        changed(up, b"come" + CONTENT)
        assert received(down, up) < 3 * BLOCK
        assert reader.read() == CONTENT


TODAY, YESTERDAY = b"daily/disk-20261121.img", b"daily/disk-20261120.img"


@pytest.mark.parametrize("goes", [True, False])
def test_a_new_issue_is_compared_with_the_one_before(
    up: Upstream, web: Nginx, place: Site, *, goes: bool
) -> None:
    up.put(YESTERDAY, CONTENT)
    up.put(b"daily/disk-20261101.img", os.urandom(SIZE))
    up.put(b"daily/other-20261120.img", os.urandom(SIZE))
    down = over_http(up, place, web)
    before = len(web.requests)
    up.put(TODAY, SCATTERED, mtime=LATER)
    if goes:
        up.at(YESTERDAY).unlink()
    up.commit()
    assert received(down, up) < 4 * BLOCK
    assert len(web.requests) == before + 3


def test_a_new_issue_of_the_same_blocks_needs_no_web_server(up: Upstream, place: Site) -> None:
    up.put(YESTERDAY, CONTENT)
    down = place.synced_downstream(up)
    up.put(TODAY, CONTENT[BLOCK : 2 * BLOCK] + CONTENT[:BLOCK] + CONTENT[2 * BLOCK :])
    up.commit()
    assert down.synced()["received"] == 0
    assert_equal(up, down)


def test_many_large_files_share_connections(up: Upstream, web: Nginx, place: Site) -> None:
    names = [b"images/%d" % number for number in range(12)]
    for name in names:
        up.put(name, CONTENT)
    down = over_http(up, place, web)
    for name in names:
        up.put(name, SCATTERED + name, mtime=LATER)
    changed(up, SCATTERED)
    before = len(web.connections)
    result = down.synced()
    assert_equal(up, down)
    assert result["received"] < 13 * 5 * BLOCK
    used = web.connections[before:]
    assert len(used) >= 13 * 3
    assert len({*used}) <= 8


def test_content_from_the_server_itself(up: Upstream, place: Site) -> None:
    up.change(serve_content=True)
    down = place.synced_downstream(up, content_urls=(f"{place.url}/content/{up.name}",))
    changed(up, SCATTERED)
    assert received(down, up) < 4 * BLOCK


def test_a_mirror_without_ranges_sends_whole_files(up: Upstream, place: Site) -> None:
    with nginx(up.tree.parent, location="max_ranges 0;") as web:
        down = over_http(up, place, web)
        changed(up, SCATTERED)
        assert received(down, up) >= SIZE


def test_blocks_come_by_http_although_rsync_is_named_first(
    up: Upstream, web: Nginx, place: Site
) -> None:
    rsync = f"{place.content_url}/{up.name}"
    down = place.synced_downstream(up, content_urls=(rsync, f"{web.url}/{up.name}"))
    before = len(asked(web))
    changed(up, SCATTERED)
    assert received(down, up) < 4 * BLOCK
    assert len(asked(web)) == before + 3


def broken(path: Path, content: bytes) -> None:
    path.chmod(0o600)
    path.write_bytes(content)


@pytest.mark.parametrize("which", ["old", "new"])
@pytest.mark.parametrize("content", [b"", b"x" * 100, bytes(21 * 36), None])
def test_an_index_that_is_wrong_or_gone_costs_a_transfer(
    up: Upstream, down: Downstream, which: str, content: bytes | None
) -> None:
    swapped = CONTENT[BLOCK : 2 * BLOCK] + CONTENT[:BLOCK] + CONTENT[2 * BLOCK :]
    changed(up, swapped)
    path = index_file(up, CONTENT if which == "old" else swapped)
    if content is None:
        path.unlink()
    else:
        broken(path, content)
    ended = down.sync()
    assert ended.code == 0, ended
    assert ("block index" in ended.err) == (content is not None)
    assert_equal(up, down)


@pytest.fixture(name="relay")
def relay_of_the_repository(up: Upstream, tmp_path: Path) -> Iterator[str]:
    """A copy of the metadata that git made, and keeps up to date; it has no indices."""
    copy = tmp_path / "modules" / up.name / "repository.git"
    up.commit()
    subprocess.run(["git", "clone", "-q", "--mirror", up.places.repository, copy], check=True)
    (tmp_path / "tree").mkdir()
    module = Module(path=str(tmp_path / "tree"), content_urls=("rsync://tier1.example/tree",))
    add_module(tmp_path, up.name, module)
    with serving(tmp_path) as (_, url):
        yield url


@pytest.mark.parametrize("beside", [True, False])
def test_a_relay_without_indices(
    up: Upstream, web: Nginx, relay: str, place: Site, tmp_path: Path, *, beside: bool
) -> None:
    """The next metadata URL has them; without one, the file comes whole."""
    down = place.downstream(
        up, url=(relay, place.url) if beside else relay, content_urls=(f"{web.url}/{up.name}",)
    )
    down.synced()
    changed(up, SCATTERED)
    copy = os.fspath(tmp_path / "modules" / up.name / "repository.git")
    subprocess.run(["git", "-C", copy, "fetch", "-q", "origin"], check=True)
    ended = down.sync("--json")
    assert (ended.code, ended.err) == (0, "")
    assert_equal(up, down)
    assert (ended.events("sync")[0]["received"] < 4 * BLOCK) == beside


def test_without_indices_nothing_is_asked(up: Upstream, place: Site) -> None:
    up.change(block_index=0)
    down = place.synced_downstream(up)
    swapped = CONTENT[BLOCK : 2 * BLOCK] + CONTENT[:BLOCK] + CONTENT[2 * BLOCK :]
    changed(up, swapped)
    assert not index_file(up, swapped).exists()
    assert received(down, up) > 0


def test_files_are_read_if_the_administrator_says_so(up: Upstream, place: Site) -> None:
    down = place.synced_downstream(up, reuse_check="digest")
    changed(up, CONTENT[BLOCK : 2 * BLOCK] + CONTENT[:BLOCK] + CONTENT[2 * BLOCK :])
    assert received(down, up) > 0


def test_the_address_of_an_index(up: Upstream, place: Site) -> None:
    up.commit()
    path = index_file(up, CONTENT)
    address = f"{place.url}/git/{up.name}.git/blocks"
    found = httpx.get(f"{address}/{path.name[:2]}/{path.name}")
    assert found.status_code == 200
    assert found.content == path.read_bytes()
    assert "immutable" in found.headers["cache-control"]
    other = path.name[:-1] + ("1" if path.name.endswith("0") else "0")
    for wrong in (f"zz/{path.name}", f"{path.name[:2]}/{other}", "looked"):
        assert httpx.get(f"{address}/{wrong}").status_code == 404
    assert httpx.post(f"{address}/{path.name[:2]}/{path.name}").status_code == 405
