"""Files that change without a commit: they never hold anything up, and cannot be abused much."""

import os

import pytest

from huai_schema.codec.publish_rules import VOLATILE_BYTES
from tests.support.upstream import T0, Downstream, Pair, Site, assert_equal

LATER = T0 + 3_600 * 10**9


@pytest.fixture(name="pair")
def committed_pair(place: Site) -> Pair:
    """A downstream in step, then a commit with all kinds of changes."""
    up = place.upstream()
    up.many(b"pool", 5)
    up.put(b"goes", b"goes")
    up.put(b"lastsync", b"1")
    up.put(b"project/trace/here", b"1")
    up.put(b"dists/sid/Release", b"old")
    down = place.synced_downstream(up)
    up.put(b"pool/new", b"new")
    up.at(b"goes").unlink()
    up.put(b"lastsync", b"22", mtime=T0 + 1)
    up.put(b"dists/sid/Release", b"new", mtime=5)
    up.commit()
    return up, down


def assert_all_else_is_done(down: Downstream) -> None:
    assert (down.dest / "pool/new").read_bytes() == b"new"
    assert (down.dest / "dists/sid/Release").read_bytes() == b"new"
    assert not (down.dest / "goes").exists()
    assert down.state.attempted == ()


def test_a_heartbeat_after_the_commit_is_published_as_it_arrived(pair: Pair) -> None:
    up, down = pair
    up.put(b"lastsync", b"a later one", mtime=LATER)
    result = down.synced()
    assert result["volatile"] == {"newer": 1, "kept": 0}
    assert (down.dest / "lastsync").read_bytes() == b"a later one"
    assert (down.dest / "lastsync").stat().st_mtime_ns == LATER
    assert_all_else_is_done(down)
    # Neither a look at the tree, nor the next sync, is confused by it.
    assert down.verify("--content").code == 0
    assert down.sync().code == 0
    up.commit()
    assert down.synced()["summary"]["fetches"] == 0
    assert_equal(up, down)
    up.put(b"lastsync", b"latest", mtime=LATER + 10**9)
    up.commit()
    assert down.synced()["volatile"] == {"newer": 0, "kept": 0}
    assert_equal(up, down)


def test_plan_and_why_say_which_files_are_volatile(pair: Pair) -> None:
    _, down = pair
    planned = down.run("plan", down.name, "--json").events("operation")
    assert [each["path"] for each in planned if each["volatile"]] == ["lastsync"]
    text = down.run("plan", down.name).out
    assert "lastsync  (2 bytes, pointers, volatile)" in text
    assert text.count("volatile") == 1
    rule = "'volatile lastsync' of the list that is always known"
    for path, volatile in (("lastsync", True), ("pool/1", False), ("pool", False)):
        (reasons,) = down.run("why", down.name, path, "--json").events("why")
        assert reasons["volatile"] is volatile
        text = down.run("why", down.name, path).out
        assert ("published as it arrives" in text) is volatile
        assert ("lastsync" in text and rule in text) is volatile
    assert "pointers, volatile)" in down.run("why", down.name, "lastsync").out
    down.configure(volatile=("/pool/*",))
    (reasons,) = down.run("why", down.name, "pool/1", "--json").events("why")
    assert (reasons["volatile"], reasons["stage"]["rule_of"]) == (True, "client.toml")


@pytest.mark.parametrize("how", ["gone", "older", "large", "symlink", "same time"])
def test_what_may_not_stand_for_it_leaves_the_old_one(pair: Pair, how: str) -> None:
    up, down = pair
    if how == "gone":
        up.at(b"lastsync").unlink()
    elif how == "older":
        up.put(b"lastsync", b"old", mtime=T0 - 10**9)
    elif how == "large":
        up.put(b"lastsync", b"x" * (VOLATILE_BYTES + 1), mtime=LATER)
    elif how == "symlink":
        up.at(b"lastsync").unlink()
        up.at(b"lastsync").symlink_to("/etc/passwd")
    else:
        up.put(b"lastsync", b"XX", mtime=T0 + 1)
    result = down.synced()
    newer = how == "same time"
    assert result["volatile"] == {"newer": int(newer), "kept": int(not newer)}
    assert (down.dest / "lastsync").read_bytes() == (b"XX" if newer else b"1")
    assert_all_else_is_done(down)
    assert down.verify().code == 0


def test_other_damage_to_a_heartbeat_is_found(pair: Pair) -> None:
    _, down = pair
    down.synced()
    (down.dest / "lastsync").chmod(0o600)
    assert down.verify().code == 47
    (down.dest / "lastsync").unlink()
    os.mkfifo(down.dest / "lastsync")
    assert down.verify().code == 47


def test_the_upstream_says_which_and_one_that_never_came_is_not_damage(place: Site) -> None:
    up = place.upstream()
    up.change(publish=("volatile /beat",))
    for name in (b"a", b"beat", b"TIME"):
        up.put(name, name)  # one content each, or they are twins
    up.commit()
    up.at(b"TIME").unlink()
    up.put(b"beat", b"22", mtime=LATER)
    down = place.downstream(up)
    assert down.synced()["volatile"] == {"newer": 1, "kept": 1}
    assert (down.dest / "beat").read_bytes() == b"22"
    assert not (down.dest / "TIME").exists()
    assert down.verify().code == 0


def test_the_administrator_has_the_last_word(pair: Pair) -> None:
    """With `volatile = []` nothing is published that was not verified."""
    up, down = pair
    up.put(b"lastsync", b"a later one", mtime=LATER)
    for volatile in ((), ("/other",)):
        down.configure(volatile=volatile)
        assert down.sync().code == 48, volatile
        assert (down.dest / "lastsync").read_bytes() == b"1"
        assert (down.dest / "pool/new").read_bytes() == b"new"
    down.configure(volatile=("a//b",))
    ended = down.run("status")
    assert (ended.code, "a//b" in ended.err) == (40, True)


def test_one_with_hardlinks_is_verified_like_any_other(pair: Pair) -> None:
    up, down = pair
    os.link(up.at(b"lastsync"), up.at(b"zz"))
    up.commit()
    with up.at(b"lastsync").open("ab") as file:
        file.write(b"more")
    assert down.sync().code == 48
    assert not (down.dest / "zz").exists()
