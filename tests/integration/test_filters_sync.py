"""Partial mirrors: the same tree as rsync makes with the same rules."""

import subprocess
from pathlib import Path

import pytest

from huai_client.config.modes import Modes
from huai_client.config.settings_record import TreeSettings
from tests.integration.test_sync_idle import loaded
from tests.support.counting_proxy import counting
from tests.support.partial_mirrors import RELEASES, assert_selected, count_of, grown, size_of
from tests.support.upstream import SECONDS, Downstream, Ended, Site, Upstream


@pytest.fixture(name="up")
def upstream(place: Site) -> Upstream:
    return grown(place)


def assert_synced(up: Upstream, down: Downstream, *rules: str) -> None:
    """Sync, and compare with rsync; the next sync has no work."""
    down.synced()
    assert_selected(up, down, rules)
    assert down.state.total_bytes == size_of(down.dest)
    assert down.state.entries == count_of(down.dest)
    assert down.synced()["changed"] is False


def test_only_selected_paths_are_fetched(up: Upstream, place: Site) -> None:
    down = place.downstream(up, filter=RELEASES)
    assert down.synced()["total_bytes"] == size_of(down.dest)
    assert_synced(up, down, *RELEASES)
    assert sorted(path.name for path in (down.dest / "dists").iterdir()) == ["stable"]
    up.put(b"dists/testing/main/new", b"left out")
    up.put(b"dists/stable/main/new", b"taken")
    up.put(b"images/two.iso", b"left out")
    up.at(b"pool/7").unlink()
    up.at(b"images/one.txt").rename(up.at(b"images/one.iso"))
    up.commit()
    fetches = [path for operation, path in down.plan() if operation == "fetch"]
    assert fetches == ["dists/stable/main/new"]
    assert_synced(up, down, *RELEASES)


CHANGES = [
    ["- *.iso"],
    [],
    ["- /pool/"],
    ["+ */", "+ *1", "- *"],
    ["- /images/link", "- /dists/testing"],
    ["- *"],
    ["- /images/one.*"],
]


def test_a_filter_that_changes_again_and_again(up: Upstream, place: Site) -> None:
    down = place.downstream(up, max_delete="100%")
    down.synced()
    for number, rules in enumerate(CHANGES):
        down.configure(filter=tuple(rules))
        if number % 2:
            up.put(b"pool/new%d" % number, b"new")
            up.put(b"images/one.txt", b"text %d" % number)
            up.commit()
        assert_synced(up, down, *rules)


def test_unselected_paths_go_and_extraneous_paths_stay(up: Upstream, place: Site) -> None:
    down = place.downstream(up, filter=("- /pool/",))
    down.synced()
    (down.dest / "pool").mkdir()
    (down.dest / "pool" / "7").write_text("mine")
    (down.dest / "images" / "mine.iso").write_text("mine")
    down.configure(filter=("- /pool/", "- *.iso"))
    deletions = [path for operation, path in down.plan() if operation == "delete"]
    assert deletions == ["images/one.iso"]
    down.synced()
    assert not (down.dest / "images" / "one.iso").exists()
    assert (down.dest / "images" / "mine.iso").read_text() == "mine"
    assert (down.dest / "pool" / "7").read_text() == "mine"
    # Asked to compare everything, it names them, and deletes them only if told to.
    down.synced("--adopt")
    assert (down.dest / "pool" / "7").exists()
    down.synced("--adopt", "--delete-extraneous")
    assert_selected(up, down, ["- /pool/", "- *.iso"])


def test_a_full_tree_becomes_a_partial_one(up: Upstream, place: Site) -> None:
    """In a tree that rsync made, the paths that the filter leaves out are extraneous."""
    down = place.downstream(up, filter=("- /pool/",))
    subprocess.run(["rsync", "-a", f"{up.tree}/", f"{down.dest}/"], check=True, timeout=SECONDS)
    assert down.synced()["summary"]["fetches"] == 0
    assert (down.dest / "pool" / "7").exists()
    down.synced("--adopt", "--delete-extraneous")
    assert_selected(up, down, ["- /pool/"])


def test_removals_obey_the_limit_of_the_mirrored_part(place: Site) -> None:
    up = place.upstream()
    up.many(b"kept", 20)
    up.many(b"other", 2500)
    down = place.synced_downstream(up)
    down.configure(filter=("- /other/",))
    ended = down.sync("--json")
    assert ended.code == 25, ended
    assert (down.dest / "other" / "7").exists()
    assert TreeSettings.parse(down.state.filter)[1:] == (Modes.SAFE, "")
    down.synced("--max-delete", "2501")
    assert_selected(up, down, ["- /other/"])
    # From here on a share is one of the part that is mirrored.
    up.many(b"kept", 1)
    for index in range(20):
        up.at(b"kept/%d" % index).unlink()
    up.commit()
    assert down.sync("--max-delete", "19").code == 25
    assert down.state.entries == 22


def test_removals_wait_and_may_come_back(up: Upstream, place: Site) -> None:
    down = place.downstream(up, delete_after="1h")
    down.synced()
    down.configure(filter=("- *.iso", "- /pool/old/"))
    assert down.synced()["delayed"] == 7
    assert (down.dest / "images" / "one.iso").exists()
    assert down.synced()["changed"] is False
    assert down.verify().code == 0
    # Still waiting though the commit names it, until the filter lets it through again.
    up.put(b"images/three.txt", b"3")
    up.commit()
    assert down.synced()["delayed"] == 7
    down.configure(filter=())
    assert down.synced()["delayed"] == 0
    assert_selected(up, down, [])
    down.configure(filter=("- *.iso", "- /pool/old/"), delete_after="0")
    assert_synced(up, down, "- *.iso", "- /pool/old/")


def test_a_merged_file_that_changes_is_noticed(up: Upstream, place: Site) -> None:
    down = place.downstream(up, filter=("merge some.filter",))
    rules = down.root / "some.filter"
    rules.write_text("# not these\n- *.iso\n")
    assert_synced(up, down, "- *.iso")
    rules.write_text("# others now\n- *.iso\n- /pool/old/\n")
    assert_synced(up, down, "- *.iso", "- /pool/old/")
    rules.write_text("- *.iso\n# the same\n- /pool/old/\n")
    assert down.synced()["changed"] is False
    rules.unlink()
    ended = down.sync()
    assert ended.code == 40
    assert str(rules) in ended.err


def test_no_heavy_module_is_loaded_for_an_unchanged_filter(up: Upstream, place: Site) -> None:
    down = place.downstream(up, filter=("- *7", "merge rules"))
    rules = down.root / "rules"
    rules.write_text("- *8\n")
    down.synced()
    with counting(place.url) as counted:
        down.configure(url=counted.url)
        assert loaded(down) == "[]\n"
        assert len(counted.requests) == 1
        rules.write_text("- *9\n")
        assert "huai_client.sync.sync" in loaded(down)
    assert_selected(up, down, ["- *7", "- *9"])


def test_a_plan_for_a_filter_fetches_and_changes_no_content(
    up: Upstream, place: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = place.downstream(up, content_urls=("rsync://127.0.0.1:9/none",), filter=RELEASES)

    def plan(*rules: str) -> Ended:
        options = [option for rule in rules for option in ("--filter", rule)]
        ended = down.run("plan", down.name, "--json", *options)
        assert ended.code == 0, ended
        return ended

    only_images = plan("+ /images/***", "- *")
    (selected,) = only_images.events("selection")
    assert (selected["entries"], selected["bytes"]) == (6, 904)
    assert selected["of_entries"] == 178
    assert only_images.events("plan")[0]["fetches"] == 2
    text = down.run("plan", down.name, "--filter", "+ /images/***", "--filter", "- *").out
    assert "selects 6 of 178 entries" in text
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.filter").write_text("+ /images/***\n- *\n")
    assert plan("merge some.filter").events("selection") == [selected]
    everything = plan("!")
    assert everything.events("selection") == []
    assert everything.events("plan")[0]["fetches"] > 100
    assert not list(down.dest.iterdir())
    assert not down.state_file.exists()


def test_a_plan_for_a_filter_says_that_the_limit_would_stop_it(place: Site) -> None:
    up = place.upstream()
    up.many(b"other", 1200)
    down = place.synced_downstream(up)
    command = ("plan", down.name, "--filter", "- /other/")
    ended = down.run(*command)
    assert ended.code == 0, ended
    assert "selects 1 of 1,202 entries" in ended.out
    assert "a sync would refuse this: 1,201 of 1,202 entries would be deleted" in ended.err
    assert "refuse" not in down.run(*command, "--max-delete", "1201").err
    assert TreeSettings.parse(down.state.filter)[1:] == (Modes.SAFE, "")


def test_status_says_that_a_filter_is_set(up: Upstream, place: Site) -> None:
    down = place.downstream(up, filter=RELEASES)
    assert "its filter is applied by the next sync" in down.run("status").out
    down.synced()
    assert "a part of it by a filter of 4 rules" in down.run("status").out
    assert len(down.run("status", "--json").events("module")[0]["filter"]) == 4
