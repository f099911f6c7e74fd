"""Local edits of a mirror: a sync finds them in the paths it touches, `verify` elsewhere."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from huai_client.config.load import load
from huai_client.metadata.repository import Repository
from huai_client.plan.build import applied_selection
from huai_client.state.paths import module_places
from huai_client.state.state import load as load_state
from huai_client.tree import View
from tests.support.comparing import verify
from tests.support.upstream import T0, Downstream, Pair, Site, assert_equal, rsync_differences
from tests.support.verifying import bit_by_bit, spoil_file


@pytest.fixture(name="pair")
def synced_pair(place: Site) -> Pair:
    up = place.upstream()
    for folder in (b"big", b"other", b"deep/er"):
        up.many(folder, 140)
    up.many(b"small", 5)
    up.put(b"file", b"content")
    up.at(b"link").symlink_to("file")
    return up, place.synced_downstream(up)


# ------------------------------------------------------------ in the paths that a sync touches


def edited(path: Path) -> None:
    path.write_bytes(b"edited here")


def deleted(path: Path) -> None:
    path.unlink()


def symlinked(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def made_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "mine").write_bytes(b"mine")


def made_a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def made_an_empty_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


Drift = Callable[[Path], None]
CHANGES: tuple[Drift, ...] = (
    edited,
    spoil_file,
    deleted,
    symlinked,
    made_an_empty_directory,
    made_a_fifo,
)


def test_files_that_the_sync_replaces_or_only_touches(pair: Pair) -> None:
    up, down = pair
    for number, drift in enumerate(CHANGES):
        drift(down.dest / "big" / str(number))
        up.put(b"big/%d" % number, b"newer")
        if drift is not spoil_file:
            drift(down.dest / "other" / str(number))
            os.utime(up.at(b"other/%d" % number), ns=(T0 + 1, T0 + 1))
    up.commit()
    down.synced()
    assert_equal(up, down)


def test_extraneous_files_stay_where_a_file_comes(pair: Pair) -> None:
    up, down = pair
    made_a_directory(down.dest / "big" / "1")
    up.put(b"big/1", b"newer")
    up.commit()
    ended = down.sync()
    assert ended.code == 23, ended
    assert "big/1: cannot be replaced, because it holds big/1/mine" in ended.err
    assert (down.dest / "big" / "1" / "mine").read_bytes() == b"mine"
    assert down.sync("--adopt", "--delete-extraneous").code == 0
    assert_equal(up, down)


def test_a_file_that_the_sync_deletes(pair: Pair) -> None:
    up, down = pair
    for number, drift in enumerate((edited, spoil_file, deleted, symlinked, made_a_fifo)):
        drift(down.dest / "big" / str(number))
        up.at(b"big/%d" % number).unlink()
    up.commit()
    down.synced()
    assert_equal(up, down)
    assert Path("/etc/passwd").exists()


@pytest.mark.parametrize("kind", ["file", "symlink", "nothing"])
def test_a_directory_in_which_something_comes(pair: Pair, tmp_path: Path, kind: str) -> None:
    up, down = pair
    (down.dest / "big").rename(tmp_path / "big")
    if kind == "file":
        (down.dest / "big").write_bytes(b"mine")
    elif kind == "symlink":
        (down.dest / "big").symlink_to(tmp_path / "big")
    before = sorted(os.listdir(tmp_path / "big"))
    up.put(b"big/new", b"new")
    up.put(b"small/new", b"new")
    up.commit()
    ended = down.sync()
    assert ended.code == 0, ended
    assert (down.dest / "big" / "new").read_bytes() == b"new"
    assert not (down.dest / "big").is_symlink()
    assert sorted(os.listdir(tmp_path / "big")) == before
    assert down.verify("--content", "--repair").code == 0
    assert_equal(up, down)


# ------------------------------------------------------------ elsewhere


def test_elsewhere_only_verify_finds_it(pair: Pair) -> None:
    up, down = pair
    paths = set()
    for number, drift in enumerate((*CHANGES, made_a_directory)):
        paths.add(f"big/{number}")
        drift(down.dest / "big" / str(number))
    up.put(b"other/1", b"newer")
    up.commit()
    down.synced()
    before = rsync_differences(up, down)
    assert all(path in before for path in paths)
    ended = down.verify("--content", "--json")
    assert ended.code == 47
    assert paths <= {event["path"] for event in ended.events("difference")}
    assert rsync_differences(up, down) == before
    ended = down.verify("--content", "--repair", "--delete-extraneous")
    assert ended.code == 0, ended
    assert_equal(up, down)


# ------------------------------------------------------------ in parts as in one piece


def in_one_piece(down: Downstream, *, content: bool) -> list[tuple[str, str, list[str]]]:
    """Return what differs, by one walk through everything."""
    module, places = load(down.root).module(down.name), module_places(down.root, down.name)
    state = load_state(places.state)
    assert state.applied
    commit = Repository(places.repository, make=False).commit(state.applied)
    with View(Path(module.dest)) as view:
        selection = applied_selection(commit, state)
        differences = list(verify(view, selection, content=content))
    return sorted(
        (one.path.decode() or ".", str(one.kind), list(one.attributes)) for one in differences
    )


def in_parts(down: Downstream, *options: str) -> list[tuple[str, str, list[str]]]:
    ended = down.verify("--json", *options)
    return sorted(
        (event["path"], event["difference"], event["attributes"])
        for event in ended.events("difference")
    )


def damage(down: Downstream, number: int) -> None:
    """One of many ways to spoil a tree with parts."""
    big, small = down.dest / "big", down.dest / "small"
    (edited, deleted, symlinked, made_a_directory, made_a_fifo, spoil_file)[number % 6](
        big / str(number)
    )
    if number == 1:
        symlinked(small / "1")
        made_a_directory(small / "2")
    elif number == 2:  # a part that is a file now
        shutil.rmtree(big)
        big.write_bytes(b"file")
    elif number == 3:  # a part that leads elsewhere
        big.rename(down.dest / "elsewhere")
        big.symlink_to("elsewhere")
    elif number == 4:  # what holds a part is gone
        (down.dest / "deep").rename(down.dest / "deeper")
    elif number == 5:
        (down.dest / "deep" / "er").rename(down.dest / "moved")
        big.chmod(0o700)
    elif number == 6:
        deleted(down.dest / "link")
        (down.dest / "deep" / "-").write_bytes(b"")
        (down.dest / "deep" / "zz").mkdir()
        (big / "sub").mkdir()
        (big / "sub" / "unknown").write_bytes(b"")


@pytest.mark.parametrize("number", range(7))
def test_parts_find_what_one_walk_finds(pair: Pair, number: int) -> None:
    """In one run, and in runs with little time."""
    _, down = pair
    damage(down, number)
    assert in_parts(down) == in_one_piece(down, content=False)
    expected = in_one_piece(down, content=True)
    assert in_parts(down, "--content") == expected != []
    differences = {
        (one.path.decode() or ".", str(one.kind), one.attributes)
        for run in bit_by_bit(down, 29 + 7 * number, content=True)
        for one in run
    }
    assert differences == {(path, kind, tuple(names)) for path, kind, names in expected}
