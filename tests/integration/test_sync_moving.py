"""An upstream that changes between its commit and the transfer."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

import pytest

from huai_client.filters import Rules
from huai_client.plan.prepared import PreparedPlan
from huai_client.run.options import SyncOptions
from huai_client.sync.follow import Following
from huai_schema.errors import ExitCode
from tests.support.upstream import Pair, Site, Upstream, assert_equal, rsync_differences


@pytest.fixture(name="pair")
def synced_pair(place: Site) -> Pair:
    up = place.upstream()
    up.many(b"pool", 5)
    up.put(b"dists/sid/Packages", b"old index")
    up.put(b"dists/sid/InRelease", b"old pointer")
    up.put(b"goes", b"goes")
    down = place.synced_downstream(up)
    up.at(b"goes").unlink()
    up.put(b"pool/new", b"new")
    up.put(b"pool/other", b"other")
    up.put(b"dists/sid/Packages", b"new index", mtime=5)
    up.put(b"dists/sid/InRelease", b"new pointer", mtime=5)
    up.commit()
    return up, down


def once(action: Callable[[], object]) -> Callable[[PreparedPlan], None]:
    """Act when the first plan is made, and not again."""
    waiting = [action]

    def planned(_: PreparedPlan) -> None:
        if waiting:
            waiting.pop()()

    return planned


def test_a_file_vanished_and_came_back(pair: Pair) -> None:
    up, down = pair
    up.at(b"pool/new").rename(up.at(b"hidden"))
    ended = down.sync("--json")
    assert ended.code == 24
    assert "pool/new: vanished upstream" in ended.err
    (result,) = ended.events("sync")
    assert result["failures"][0] == "pool/new: vanished upstream"
    assert result["withheld"] == 4  # the index, the pointer, the deletion, and the list of all
    # Payload that came is published; what may refer to what did not come is not.
    assert (down.dest / "pool/other").read_bytes() == b"other"
    assert (down.dest / "dists/sid/Packages").read_bytes() == b"old index"
    assert (down.dest / "goes").exists()
    assert down.state.attempted != ()
    up.at(b"hidden").rename(up.at(b"pool/new"))
    result = down.synced()
    assert result["summary"]["fetches"] == 3
    assert result["received"] < 1000
    up.commit()
    down.synced()
    assert_equal(up, down)


def test_content_does_not_match(pair: Pair) -> None:
    up, down = pair
    up.put(b"pool/new", b"NEW")  # the same size and time
    ended = down.sync()
    assert ended.code == 48
    assert "pool/new: the content does not match the metadata" in ended.err
    assert "huai-server scrub --full NAME there" in ended.err
    assert not (down.dest / "pool/new").exists()
    assert (down.dest / "pool/other").read_bytes() == b"other"
    assert (down.dest / "dists/sid/InRelease").read_bytes() == b"old pointer"
    up.commit()
    down.synced()
    assert (down.dest / "pool/new").read_bytes() == b"NEW"
    assert_equal(up, down)
    up.put(b"pool/1", b"committed")
    up.commit()
    up.put(b"pool/1", b"replaced!")
    before = (down.dest / "pool/1").read_bytes()
    assert down.sync().code == 48
    assert (down.dest / "pool/1").read_bytes() == before, "a changed file keeps its old content"
    up.commit()
    down.synced()
    assert_equal(up, down)


@pytest.mark.parametrize("back", [False, True])
def test_the_upstream_moves_on(pair: Pair, *, back: bool) -> None:
    up, down = pair

    def move_on() -> None:
        up.at(b"pool/new").unlink()
        up.at(b"pool/other").unlink()
        if back:
            up.put(b"goes", b"goes")
            up.put(b"dists/sid/Packages", b"old index")
            up.put(b"dists/sid/InRelease", b"old pointer")
        up.commit()

    result = down.observed(once(move_on))
    assert result.exit_code is ExitCode.OK
    assert result.serial == 3
    assert_equal(up, down)


def test_what_came_is_published_before_the_next_plan(pair: Pair) -> None:
    up, down = pair
    views: list[tuple[bool, bytes]] = []

    def planned(_: PreparedPlan) -> None:
        index = (down.dest / "dists/sid/Packages").read_bytes()
        views.append(((down.dest / "pool/other").exists(), index))
        if len(views) == 1:
            up.at(b"pool/new").unlink()
            up.commit()

    assert down.observed(planned).exit_code is ExitCode.OK
    assert views == [(False, b"old index"), (True, b"old index")]
    assert_equal(up, down)


def test_attempts_that_left_nothing_are_forgotten(pair: Pair) -> None:
    """An upstream with a file that never comes: what is compared must not grow for ever."""
    up, down = pair
    for number in range(8):
        up.put(b"pool/never", b"%d" % number, mtime=number + 10)
        up.put(b"dists/sid/Packages", b"index %d" % number, mtime=number + 10)
        up.put(b"pool/now", b"%d" % number, mtime=number + 10)
        up.commit()
        up.at(b"pool/never").unlink()
        assert down.sync().code == 24
        assert (down.dest / "pool/now").read_bytes() == b"%d" % number
        assert 0 < len(down.state.attempted) <= 4
    up.commit()
    down.synced()
    assert_equal(up, down)


@pytest.mark.parametrize("delete_after", ["0", "30d"])
def test_attempts_are_forgotten_while_a_path_is_in_the_way(place: Site, delete_after: str) -> None:
    up = place.upstream()
    up.put(b"old/f", b"f")
    up.put(b"old/g", b"g")
    down = place.synced_downstream(up, delete_after=delete_after)
    up.at(b"old/f").unlink()
    up.commit()
    down.synced()
    in_the_way = down.dest / "e/z"
    in_the_way.mkdir(parents=True)
    (in_the_way / "own").touch()
    up.put(b"e/z", b"z")
    for number in range(6):
        up.put(b"d/x", b"%d" % number, mtime=number)
        up.commit()
        assert down.sync().code == 23
        assert 0 < len(down.state.attempted) <= 4
    shutil.rmtree(in_the_way)
    down.synced()
    assert rsync_differences(up, down) == ("" if delete_after == "0" else "*deleting   old/f\n")
    assert down.verify("--content").code == 0


def test_a_first_stage_forgets_no_attempt(pair: Pair) -> None:
    """A path that it leaves alone may still hold content of an earlier attempt."""
    up, down = pair
    down.synced()

    def lose(number: int) -> None:
        up.put(b"pool/never", b"%d" % number, mtime=number)
        up.commit()
        up.at(b"pool/never").unlink()

    up.put(b"d/x", b"A")
    up.commit()
    down.synced()
    up.put(b"d/x", b"B", mtime=5)
    up.put(b"d/y", b"y")
    lose(0)
    assert down.sync().code == 24
    assert (down.dest / "d/x").read_bytes() == b"B"
    up.put(b"d/x", b"A")
    up.at(b"d/y").unlink()
    pool = SyncOptions(only=Rules.parse([b"+ /pool/***", b"- *"], place="test"))
    for number in range(1, 5):
        lose(number)
        assert down.observed(options=pool).exit_code is ExitCode.VANISHED
    up.commit()
    down.synced()
    assert_equal(up, down)


def keep_changing(up: Upstream, numbers: Iterator[int]) -> Callable[[PreparedPlan], None]:
    """Commit while each plan is made, and change a file of that commit once more."""

    def move_on(_: PreparedPlan) -> None:
        number = next(numbers)
        up.at(b"pool/new").unlink()
        up.commit()
        up.put(b"pool/new", b"%d" % number, mtime=number)
        up.commit()
        up.at(b"pool/new").rename(up.at(b"pool/kept"))
        up.put(b"pool/new", b"not committed")

    return move_on


def test_an_upstream_that_never_rests(pair: Pair) -> None:
    up, down = pair
    numbers = count()
    result = down.observed(keep_changing(up, numbers))
    assert result.exit_code is ExitCode.MISMATCH
    # The first plan, and ten more that came no closer.
    assert result.plans == next(numbers) == 11
    up.commit()
    down.synced()
    assert_equal(up, down)


def test_an_upstream_that_never_rests_is_followed_for_five_minutes(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    up, down = pair
    clock = count(0.0, 100.0)  # it looks at it when the first plan is done, and after each
    following = partial(Following, clock=lambda: next(clock))
    monkeypatch.setattr("huai_client.sync.sync.Following", following)
    result = down.observed(keep_changing(up, count()))
    assert result.exit_code is ExitCode.MISMATCH
    assert result.plans == 3
    monkeypatch.undo()
    up.commit()
    down.synced()
    assert_equal(up, down)
