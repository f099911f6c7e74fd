"""Partial mirrors: what stands there is what rsync with the same rules makes of the same tree."""

import os
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest

from huai_client.config.modes import Modes
from huai_client.config.settings_record import TreeSettings
from tests.integration.test_sync_idle import loaded
from tests.support.counting_proxy import counting
from tests.support.partial_mirrors import RELEASES, assert_selected, count_of, grown, size_of
from tests.support.upstream import SECONDS, T0, Site, Upstream


def test_only_what_is_selected_is_fetched(place: Site) -> None:
    up = grown(place)
    down = place.downstream(up, filter=RELEASES)
    result = down.synced()
    assert_selected(up, down, RELEASES)
    assert sorted(each.name for each in (down.dest / "dists").iterdir()) == ["stable"]
    assert result["total_bytes"] == down.state.total_bytes == size_of(down.dest)
    assert down.state.entries == count_of(down.dest)
    assert down.synced()["changed"] is False


def test_a_new_commit_through_the_same_filter(place: Site) -> None:
    up = grown(place)
    down = place.downstream(up, filter=RELEASES)
    down.synced()
    up.put(b"dists/testing/main/new", b"left out")
    up.put(b"dists/stable/main/new", b"taken")
    up.put(b"images/two.iso", b"left out")
    up.at(b"pool/7").unlink()
    up.at(b"images/one.txt").rename(up.at(b"images/one.iso"))
    up.commit()
    assert [path for what, path in down.plan() if what == "fetch"] == ["dists/stable/main/new"]
    down.synced()
    assert_selected(up, down, RELEASES)
    assert down.state.total_bytes == size_of(down.dest)
    assert down.state.entries == count_of(down.dest)


CHANGES = [
    ["- *.iso"],
    [],
    ["- /pool/"],
    ["+ */", "+ *1", "- *"],
    ["- /images/link", "- /dists/testing"],
    ["- *"],
    ["- /images/one.*"],
]


def test_a_filter_that_changes_again_and_again(place: Site) -> None:
    up = grown(place)
    down = place.downstream(up, max_delete="100%")
    down.synced()
    for number, rules in enumerate(CHANGES):
        down.configure(filter=tuple(rules))
        if number % 2:
            up.put(b"pool/new%d" % number, b"new")
            up.put(b"images/one.txt", b"text %d" % number)
            up.commit()
        down.synced()
        assert_selected(up, down, rules)
        assert down.synced()["changed"] is False


def test_what_is_no_longer_selected_goes_and_extraneous_paths_stay(place: Site) -> None:
    up = grown(place)
    down = place.downstream(up, filter=("- /pool/",))
    down.synced()
    (down.dest / "pool").mkdir()
    (down.dest / "pool" / "7").write_text("mine")
    (down.dest / "images" / "mine.iso").write_text("mine")
    down.configure(filter=("- /pool/", "- *.iso"))
    assert [path for what, path in down.plan() if what == "delete"] == ["images/one.iso"]
    down.synced()
    assert not (down.dest / "images" / "one.iso").exists()
    assert (down.dest / "images" / "mine.iso").read_text() == "mine"
    assert (down.dest / "pool" / "7").read_text() == "mine"
    # Asked to compare everything, it names them, and deletes them only if told to.
    down.synced("--adopt")
    assert (down.dest / "pool" / "7").exists()
    down.synced("--adopt", "--delete-extraneous")
    assert_selected(up, down, ["- /pool/", "- *.iso"])


def test_a_full_tree_becomes_a_partial_one(place: Site) -> None:
    """A tree that rsync made: what the filter leaves out is extraneous."""
    up = grown(place)
    down = place.downstream(up, filter=("- /pool/",))
    subprocess.run(["rsync", "-a", f"{up.tree}/", f"{down.dest}/"], check=True, timeout=SECONDS)
    assert down.synced()["summary"]["fetches"] == 0
    assert (down.dest / "pool" / "7").exists()
    down.synced("--adopt", "--delete-extraneous")
    assert_selected(up, down, ["- /pool/"])


def test_removals_obey_the_limit_of_what_was_mirrored(place: Site) -> None:
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


def test_removals_wait_and_may_come_back(place: Site) -> None:
    up = grown(place)
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
    down.synced()
    assert_selected(up, down, ["- *.iso", "- /pool/old/"])


def test_a_merged_file_that_changes_is_noticed(place: Site) -> None:
    up = grown(place)
    down = place.downstream(up, filter=("merge some.filter",))
    rules = down.root / "some.filter"
    rules.write_text("# not these\n- *.iso\n")
    down.synced()
    assert_selected(up, down, ["- *.iso"])
    rules.write_text("# others now\n- *.iso\n- /pool/old/\n")
    assert down.synced()["changed"] is True
    assert_selected(up, down, ["- *.iso", "- /pool/old/"])
    rules.write_text("- *.iso\n# the same\n- /pool/old/\n")
    assert down.synced()["changed"] is False
    rules.unlink()
    ended = down.sync()
    assert ended.code == 40
    assert str(rules) in ended.err


def test_nothing_heavy_is_loaded_to_see_that_the_filter_is_the_same(place: Site) -> None:
    up = grown(place)
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


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (": .rsync-filter", "per-directory"),
        ("P *.mine", "protect"),
        ("*.iso", "this is not the beginning of a rule"),
        ("-p *.iso", "perishable"),
        ("merge missing.filter", "No such file"),
    ],
)
def test_a_rule_that_is_not_supported(place: Site, rule: str, says: str) -> None:
    up = grown(place)
    down = place.downstream(up, filter=("- *.iso", rule))
    ended = down.sync()
    assert ended.code == 40, ended
    assert says in ended.err
    assert not list(down.dest.iterdir())
    if not rule.startswith("merge"):
        assert f"{down.name}: filter rule 2" in ended.err


ONLY_IMAGES = ("--filter", "+ /images/***", "--filter", "- *")


def test_a_plan_for_a_filter_fetches_and_changes_nothing(
    place: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = grown(place)
    down = place.downstream(up, content_urls=("rsync://127.0.0.1:9/none",), filter=RELEASES)
    ended = down.run("plan", down.name, "--json", *ONLY_IMAGES)
    assert ended.code == 0, ended
    selected = ended.events("selection")[0]
    assert (selected["entries"], selected["bytes"]) == (6, 904)
    assert selected["of_entries"] == 178
    assert ended.events("plan")[0]["fetches"] == 2
    assert "selects 6 of 178 entries" in down.run("plan", down.name, *ONLY_IMAGES).out
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.filter").write_text("+ /images/***\n- *\n")
    merged = down.run("plan", down.name, "--json", "--filter", "merge some.filter")
    assert merged.events("selection") == [selected]
    everything = down.run("plan", down.name, "--json", "--filter", "!")
    assert everything.events("selection") == []
    assert everything.events("plan")[0]["fetches"] > 100
    assert not list(down.dest.iterdir())
    assert not down.state_file.exists()


def test_a_plan_for_a_filter_says_that_the_limit_would_stop_it(place: Site) -> None:
    up = place.upstream()
    up.many(b"other", 1200)
    down = place.synced_downstream(up)
    tried = ("plan", down.name, "--filter", "- /other/")
    ended = down.run(*tried)
    assert ended.code == 0, ended
    assert "selects 1 of 1,202 entries" in ended.out
    assert "a sync would refuse this: 1,201 of 1,202 entries would be deleted" in ended.err
    assert down.run(*tried, "--max-delete", "1201").err.count("refuse") == 0
    assert TreeSettings.parse(down.state.filter)[1:] == (Modes.SAFE, "")


def test_status_says_that_a_filter_is_set(place: Site) -> None:
    up = grown(place)
    down = place.downstream(up, filter=RELEASES)
    assert "its filter is applied by the next sync" in down.run("status").out
    down.synced()
    assert "a part of it by a filter of 4 rules" in down.run("status").out
    assert len(down.run("status", "--json").events("module")[0]["filter"]) == 4


NAMES = (b"a", b"b", b"ab", b"c.iso", b"d e", b"x*", b".h")
PARTS = (b"a", b"b", b"*", b"**", b"?", b"*.iso", b"[ab]", b"ab", b"x\\*", b"***", b"d e")


def random_rules(random: Random) -> list[str]:
    rules = []
    for _ in range(random.randrange(5)):
        parts = [random.choice(PARTS) for _ in range(random.randrange(1, 4))]
        pattern = random.choice((b"", b"/")) + b"/".join(parts) + random.choice((b"", b"", b"/"))
        rules.append(random.choice(("- ", "- ", "+ ")) + os.fsdecode(pattern))
    return rules


def shake(random: Random, up: Upstream) -> None:
    """Add and take away some files and directories."""
    for number in range(40):
        depth = random.randrange(1, 5)
        path = up.at(b"/".join(random.choice(NAMES) for _ in range(depth)))
        if path.is_dir():
            if random.random() < 0.1:
                shutil.rmtree(path)
        elif path.exists():
            path.unlink()
        elif all(not above.is_file() for above in path.parents):
            # Each time another one: without digests nothing else tells contents apart.
            inside = os.fsencode(path.relative_to(up.tree))
            up.put(inside, b"%d" % number, mtime=T0 + random.getrandbits(60))


@pytest.mark.parametrize("delete_after", ["0", "1h"])
@pytest.mark.parametrize("seed", range(3))
def test_random_filters_over_random_trees(place: Site, seed: int, delete_after: str) -> None:
    random = Random(seed)
    up = place.upstream(digest=random.choice(["now", "off"]))
    down = place.downstream(up, delete_after=delete_after)
    for number in range(5):
        shake(random, up)
        up.commit()
        rules = random_rules(random)
        last = number == 4
        down.configure(filter=tuple(rules), delete_after="0" if last else delete_after)
        if down.synced()["delayed"]:
            assert not last
            assert down.verify("--content").code == 0
        else:
            assert_selected(up, down, rules)
            assert down.state.entries == count_of(down.dest)
            assert down.state.total_bytes == size_of(down.dest)
