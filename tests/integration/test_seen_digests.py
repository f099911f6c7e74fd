"""Digests of what arrives from an upstream that states none."""

from collections.abc import Iterator

import pytest

from tests.support.plain_upstream import Place, Plain, differences, serving_plainly
from tests.support.upstream import T0, Downstream, rsync_would
from tests.support.verifying import differing_paths, spoil, totals


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serving_plainly(tmp_path_factory.mktemp("plain")) as place:
        yield place


def synced(place: Place, **settings: object) -> tuple[Plain, Downstream]:
    up = place.upstream()
    up.many(b"pool", 5)
    up.many(b"pool/deep", 5)
    down = place.downstream(up, **settings)
    down.synced()
    return up, down


def checked(down: Downstream, *options: str) -> tuple[list[str], int, int]:
    """Return what `verify --content` finds to differ, and the files with and without a digest."""
    ended = down.run("verify", down.name, "--content", "--json", *options)
    tally = totals(ended)
    return differing_paths(ended), tally["seen"], tally["undigested"]


def test_damage_is_found_and_repaired(plain: Place) -> None:
    up, down = synced(plain)
    assert checked(down) == ([], 10, 0)
    damaged = ["pool/1", "pool/deep/2"]
    for path in damaged:
        spoil(down, path)
    assert down.verify().code == 0
    ended = down.verify("--content")
    assert "10 of them compared with their digests as seen on arrival" in ended.err
    assert checked(down, "--path", "pool/deep") == (["pool/deep/2"], 5, 0)
    assert checked(down, "--path", "pool/1") == (["pool/1"], 1, 0)
    assert checked(down, "--path", "pool/2") == ([], 1, 0)
    assert checked(down, "--sample=100%") == (damaged, 10, 0)
    assert down.verify("--content", "--repair").code == 0
    assert checked(down) == ([], 10, 0)
    assert differences(up, down) == ""


def test_digests_follow_what_changes(plain: Place) -> None:
    up, down = synced(plain)
    up.put(b"pool/1", b"another")
    up.at(b"pool/2").unlink()
    up.at(b"pool/3").rename(up.at(b"moved"))
    up.at(b"pool/4").chmod(0o600)
    up.many(b"large", 200)
    down.synced()
    assert checked(down) == ([], 209, 0)
    up.at(b"large").rename(up.at(b"renamed"))
    down.synced("--max-delete=100%")
    assert checked(down) == ([], 209, 0)
    spoil(down, "moved")
    spoil(down, "renamed/7")
    assert checked(down) == (["moved", "renamed/7"], 209, 0)


def test_a_file_that_comes_back_is_not_taken_for_the_later_one(plain: Place) -> None:
    up, down = synced(plain, trash="30d")
    up.put(b"pool/1", b"another", mtime=T0 + 1)
    down.synced()
    assert down.run("undo", down.name).code == 0
    assert checked(down) == ([], 9, 1)


def test_a_lost_record_only_compares_less(plain: Place) -> None:
    _, down = synced(plain)
    (record,) = down.root.rglob("seen")
    record.write_bytes(b"damaged")
    assert checked(down) == ([], 0, 10)


def test_equal_files_become_hardlinks(plain: Place) -> None:
    up = plain.upstream()
    for name in (b"a/one", b"a/two", b"b/three", b"other"):
        up.put(name, b"equal")
    up.at(b"other").chmod(0o600)
    up.put(b"later", b"equal", mtime=T0 + 1)
    down = plain.downstream(up, duplicates="hardlink")
    one, two, three = (down.dest / name for name in ("a/one", "a/two", "b/three"))

    def inodes() -> list[int]:
        return [path.stat().st_ino for path in (one, two, three)]

    down.synced()
    assert len({*inodes()}) == 1
    assert one.stat().st_nlink == 3, "one of another mode or time stays apart"
    up.put(b"c/four", b"equal")
    down.synced()
    assert (down.dest / "c/four").samefile(one), "one that is here already has another name"
    up.put(b"a/two", b"EQUAL", mtime=T0 + 2)
    up.at(b"b/three").chmod(0o640)
    down.synced()
    assert one.read_bytes() == b"equal"
    assert two.read_bytes() == b"EQUAL"
    assert (one.stat().st_mode, three.stat().st_mode) == (
        up.at(b"a/one").stat().st_mode,
        up.at(b"b/three").stat().st_mode,
    )
    assert rsync_would(up, down, "-anci", "--delete", "--exclude=.~tmp~") == ""
    assert checked(down)[0] == []
    spoil(down, "a/one")
    up.put(b"c/five", b"equal")
    down.synced()
    assert (down.dest / "c/five").read_bytes() == b"equal", "a damaged file gets no other name"
    down.configure(duplicates="copy")
    down.synced()
    assert one.stat().st_nlink == 1
