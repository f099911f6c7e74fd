"""A setting that says what the tree is holds from the next sync on, without a new commit."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from huai_client.config.settings_record import TreeSettings
from huai_client.state.state import save
from tests.support.unprivileged import NOBODY
from tests.support.upstream import Downstream, Site, Upstream

COMPARED = "the whole tree is compared once"


def upstream(place: Site) -> Upstream:
    up = place.upstream()
    up.many(b"folder", 3)
    up.put(b"x", b"named by an index")
    up.put(b"one", b"the same content")
    up.put(b"two", b"the same content")
    up.at(b"inside").symlink_to("folder/0")
    up.at(b"out").symlink_to("/elsewhere")
    if os.geteuid() == 0:
        os.chown(up.at(b"x"), NOBODY, NOBODY)
    return up


class Setting(NamedTuple):
    """Two values of a key, and what shows which of them holds."""

    one: dict[str, Any]
    other: dict[str, Any]
    view: Callable[[Upstream, Downstream], object]
    by_one: object
    by_other: object


def _is_owned(up: Upstream, down: Downstream) -> bool:
    """As only root can change an owner, any other user has every file right."""
    ours, theirs = ((tree / "x").stat() for tree in (down.dest, up.tree))
    return ours.st_uid == theirs.st_uid


SETTINGS = {
    "owners": Setting(
        {"owners": False}, {"owners": True}, _is_owned, os.geteuid() != 0, by_other=True
    ),
    "protect": Setting(
        {"protect": ("/x",)},
        {"protect": ()},
        lambda _, down: (down.dest / "x").exists(),
        by_one=False,
        by_other=True,
    ),
    "safe_links": Setting(
        {"safe_links": True},
        {"safe_links": False},
        lambda _, down: sorted(path.name for path in down.dest.iterdir() if path.is_symlink()),
        ["inside"],
        ["inside", "out"],
    ),
}


@pytest.mark.parametrize("key", SETTINGS)
def test_a_changed_setting_is_applied_at_once_and_said_once(place: Site, key: str) -> None:
    setting = SETTINGS[key]
    up = upstream(place)
    down = place.synced_downstream(up, **setting.one)
    assert setting.view(up, down) == setting.by_one
    down.configure(**setting.other)
    ended = down.sync()
    assert (ended.code, ended.err.count(COMPARED), f"another {key} than" in ended.err) == (0, 1, 1)
    assert setting.view(up, down) == setting.by_other
    assert down.verify().code == 0
    again = down.sync()
    assert "nothing new" in again.err
    assert COMPARED not in again.err
    down.configure(**setting.one)
    assert COMPARED in down.sync().err
    # Owners that were set stay, and what is protected from now on, too.
    left = setting.by_one if key == "safe_links" else setting.by_other
    assert setting.view(up, down) == left
    assert down.verify().code == 0
    assert "nothing new" in down.sync().err


def test_what_is_protected_from_now_on_is_left_as_it_is(place: Site) -> None:
    up = upstream(place)
    down = place.synced_downstream(up)
    down.configure(protect=("/x",))
    assert COMPARED in down.sync().err
    assert (down.dest / "x").read_bytes() == b"named by an index"
    assert down.state.partial == "protect leaves out /x"
    down.configure(protect=())
    down.synced()
    assert down.state.partial == ""


def test_a_symlink_that_is_left_out_goes_though_deletions_wait(place: Site) -> None:
    up = upstream(place)
    down = place.synced_downstream(up, delete_after="1h")
    down.configure(safe_links=True)
    assert down.synced()["summary"]["deletions"] == 1
    assert not (down.dest / "out").is_symlink()


def test_a_tree_without_the_unsafe_symlinks_is_not_whole(place: Site) -> None:
    up = upstream(place)
    down = place.synced_downstream(up, safe_links=True)
    assert down.state.partial == "safe_links leaves out out"
    up.put(b"x", b"newer")
    up.commit()
    down.synced()
    assert down.state.partial == "safe_links leaves out out"
    up.at(b"out").unlink()
    up.commit()
    down.synced("--adopt")
    assert down.state.partial == ""
    up.at(b"folder/up").symlink_to("../../above")
    up.commit()
    down.synced()
    assert down.state.partial == "safe_links leaves out folder/up"


def test_what_an_interrupted_run_did_by_other_settings_is_undone(place: Site) -> None:
    up = upstream(place)
    down = place.synced_downstream(up)
    state = down.state
    protected = state.filter.replace('"protect": []', '"protect": ["/x"]')
    save(
        down.state_file,
        replace(state, attempted=(state.applied or "",), attempted_filters=(protected,)),
    )
    (down.dest / "x").unlink()
    down.synced()
    assert (down.dest / "x").exists()


def test_a_state_that_recorded_no_settings_is_compared_once(place: Site) -> None:
    up = upstream(place)
    down = place.synced_downstream(up, duplicates="hardlink")
    before = (down.dest / "two").stat()
    save(down.state_file, replace(down.state, filter="modes safe\n"))
    (down.dest / "x").unlink()  # what a change left behind that such a version did not apply
    ended = down.sync()
    assert COMPARED in ended.err
    assert "were not recorded" in ended.err
    assert (down.dest / "x").exists()
    after = (down.dest / "two").stat()
    assert (after.st_ino, after.st_nlink) == (before.st_ino, before.st_nlink)
    assert TreeSettings.parse(down.state.filter).keys
    assert "nothing new" in down.sync().err


def test_a_rewritten_file_that_shares_an_inode_is_fetched(place: Site) -> None:
    up = upstream(place)
    down = place.synced_downstream(up, duplicates="hardlink")
    up.put(b"two", b"another contents")
    up.commit()
    down.configure(owners=False)
    assert COMPARED in down.sync().err
    assert [(down.dest / name).read_bytes() for name in ("one", "two")] == [
        b"the same content",
        b"another contents",
    ]


def test_what_shared_an_inode_is_split(place: Site) -> None:
    up = upstream(place)
    down = place.synced_downstream(up, duplicates="hardlink")
    (down.dest / "two").unlink()
    os.link(down.dest / "one", down.dest / "two")
    down.configure(duplicates="copy")
    assert COMPARED in down.sync().err
    assert (down.dest / "two").stat().st_nlink == 1
    assert down.verify().code == 0


def test_a_changed_filter_compares_no_whole_tree(place: Site) -> None:
    down = place.synced_downstream(upstream(place))
    down.configure(filter=("- /folder/",))
    assert COMPARED not in down.sync().err
    assert not (down.dest / "folder").exists()
