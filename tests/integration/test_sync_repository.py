"""The downstream's copy of the metadata: lost, damaged, from other transports, and kept small."""

import shutil
import subprocess
from pathlib import Path

import pytest

from huai_client.metadata.repository import Repository
from tests.support.counting_proxy import counting
from tests.support.upstream import (
    ENVIRONMENT,
    SECONDS,
    Downstream,
    Pair,
    Site,
    Upstream,
    assert_equal,
    rsync_differences,
)

UNBORN = "notice: HEAD points to an unborn branch (main)\n"


@pytest.fixture(name="pair")
def synced_pair(place: Site) -> Pair:
    up = place.upstream()
    for folder in range(20):
        up.many(b"folder%d" % folder, 30)
    return up, place.synced_downstream(up)


def change(up: Upstream, number: int) -> None:
    up.put(b"folder%d/%d" % (number % 20, number % 30), b"changed %d" % number, mtime=number)
    up.commit()


def packs(down: Downstream) -> list[Path]:
    return sorted((down.repository / "objects" / "pack").glob("*.pack"))


def git(down: Downstream, *arguments: str, stdin: bytes = b"") -> str:
    done = subprocess.run(
        ["git", "-C", down.repository, *arguments],
        input=stdin,
        capture_output=True,
        env=ENVIRONMENT,
        timeout=SECONDS,
        check=True,
    )
    return (done.stdout + done.stderr).decode()


def test_a_repository_without_a_part(pair: Pair) -> None:
    up, down = pair
    for number, part in enumerate(("HEAD", "config", "objects", "refs", ".")):
        change(up, number)
        path = down.repository / part
        shutil.rmtree(path) if path.is_dir() else path.write_text("\0nonsense")
        assert down.synced()["summary"]["fetches"] == 1, part
    assert_equal(up, down)


@pytest.mark.parametrize("name", ["refs/huai/fetched", "refs/huai/kept/*", "packed-refs"])
def test_refs_that_a_power_cut_left(pair: Pair, name: str) -> None:
    up, down = pair
    for number, damage in enumerate((b"", b"garbage\n", bytes(41))):
        change(up, number)
        place = next(down.repository.glob(name), down.repository / name)
        place.write_bytes(damage or (b"\0" if name == "packed-refs" else b""))
        assert down.synced()["summary"]["fetches"] == 1, damage
    assert_equal(up, down)


def test_an_upstream_that_is_refused_leaves_nothing(pair: Pair) -> None:
    up, down = pair
    before, state = packs(down), down.state
    saved = up.places.repository.with_name("saved")
    up.places.repository.rename(saved)
    for number in range(3):
        up.put(b"other", b"%d" % number, mtime=number)
        up.commit()
        up.commit()
        assert down.sync().code == 46
        assert packs(down) == before
    assert down.state == state
    shutil.rmtree(up.places.repository)
    saved.rename(up.places.repository)
    change(up, 1)
    down.synced()
    assert_equal(up, down)
    assert len(packs(down)) > len(before)


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("damage", ["cut", "overwritten", "missing", "no index"])
def test_a_damaged_pack(pair: Pair, damage: str, *, new: bool) -> None:
    up, down = pair
    if new:
        change(up, 1)
    pack = packs(down)[0]
    content = pack.read_bytes()
    pack.unlink()
    if damage == "cut":
        pack.write_bytes(content[: len(content) // 2])
    elif damage == "overwritten":
        pack.write_bytes(content[:100] + bytes(len(content) - 200) + content[-100:])
    elif damage == "no index":
        pack.write_bytes(content)
        pack.with_suffix(".idx").unlink()
        pack.with_suffix(".idx").write_bytes(b"")
    # In other processes: this one still has the pack mapped.
    if new:
        ended = down.process("sync", down.name, "--json")
        assert ended.events("sync")[0]["summary"]["fetches"] == 1
    else:
        ended = down.process("verify", down.name)
        assert ended.code == 50, ended
        assert "--adopt" in ended.err
        assert down.process("sync", "--adopt", down.name).code == 0
    assert down.process("verify", "--content", down.name).code == 0
    assert rsync_differences(up, down) == ""


def test_a_commit_that_the_repository_lost(pair: Pair) -> None:
    up, down = pair
    applied = down.state.applied
    assert applied is not None
    text = down.state_file.read_text()
    down.state_file.write_text(text.replace(applied, "0" * 40))
    change(up, 1)
    (down.dest / "folder3" / "3").unlink()
    assert down.synced()["summary"]["fetches"] == 2  # all was compared
    assert_equal(up, down)


@pytest.mark.parametrize("form", ["file://{path}", "{path}", "{site}/git/{name}.git"])
def test_the_url_of_a_repository(place: Site, form: str) -> None:
    up = place.upstream()
    up.many(b"folder", 10)
    url = form.format(path=up.places.repository, site=place.url, name=up.name)
    down = place.synced_downstream(up, url=url)
    up.put(b"new", b"1")
    up.commit()
    down.synced()
    assert_equal(up, down)
    assert down.synced()["changed"] is False


@pytest.mark.parametrize("local", [False, True])
def test_the_repository_stays_small(place: Site, pair: Pair, *, local: bool) -> None:
    up, down = pair
    if local:
        down.configure(url=str(up.places.repository))
    sizes = []
    for number in range(8):
        change(up, number)
        down.synced()
        Repository(down.repository).repack(limit=2)
        sizes.append(sum(path.stat().st_size for path in packs(down)))
        assert len(packs(down)) <= 2
    assert max(sizes) < 2 * sizes[0]
    # Sound for git itself, and the next fetch still is a small one.
    assert git(down, "fsck", "--full", "--strict") in ("", UNBORN)
    change(up, 90)
    if not local:
        with counting(place.url) as counted:
            down.configure(url=counted.url)
            down.synced()
        assert 0 < counted.received < 10_000
    else:
        down.synced()
    assert_equal(up, down)


def test_a_sync_tidies_up(pair: Pair) -> None:
    up, down = pair
    for number in range(45):
        blob = git(down, "hash-object", "-w", "--stdin", stdin=b"%d" % number)
        git(down, "pack-objects", "-q", "objects/pack/pack", stdin=blob.encode())
    assert len(packs(down)) == 46
    left = down.repository / "objects" / "pack" / "tmp_pack_abcdef"
    left.write_bytes(b"half of a fetch that was killed")
    change(up, 1)
    down.synced()
    assert len(packs(down)) == 1
    assert not left.exists()
    # The applied one, and the one before it.
    assert git(down, "rev-list", "--all", "--count").strip() == "2"
    change(up, 2)
    down.synced()
    assert len(packs(down)) == 2
    assert_equal(up, down)


def test_an_upstream_that_was_emptied(pair: Pair) -> None:
    up, down = pair
    shutil.rmtree(up.places.repository)
    assert down.sync().code == 45
    subprocess.run(["git", "init", "-q", "--bare", up.places.repository], check=True, timeout=60)
    down.configure(url=str(up.places.repository))
    ended = down.sync()
    assert (ended.code, "nothing is committed there yet" in ended.err) == (45, True)
