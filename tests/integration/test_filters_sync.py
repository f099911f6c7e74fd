"""Partial mirrors: the same tree as rsync makes with the same rules."""

import subprocess
from pathlib import Path

import pytest

from huai_client.config.modes import Modes
from huai_client.config.settings_record import TreeSettings
from huai_client.filters import FilterError, Parser, Rules
from huai_client.metadata import static_fetch
from huai_client.metadata.static_fetch import LARGE
from huai_schema.errors import ExitCode
from tests.integration.test_sync_idle import loaded
from tests.support.counting_proxy import counting
from tests.support.filter_oracle import copied, left_over, options_of, rule_file, selected, tree_of
from tests.support.partial_mirrors import RELEASES, assert_selected, count_of, grown, size_of
from tests.support.upstream import SECONDS, Downstream, Ended, Site, Upstream


@pytest.fixture(autouse=True, params=[LARGE, 0], ids=["all-metadata", "a-part"])
def fetched_metadata(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter that names what it mirrors changes what is fetched, and no result."""
    monkeypatch.setattr(static_fetch, "LARGE", request.param)


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
    assert "its filter is applied by the next sync" in down.run("status").out
    assert down.synced()["total_bytes"] == size_of(down.dest)
    assert "a part of it by a filter of 4 rules" in down.run("status").out
    assert len(down.run("status", "--json").events("module")[0]["filter"]) == 4
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
    command = ("plan", down.name, "--filter", "- /other/")
    ended = down.run(*command)
    assert ended.code == ExitCode.MAX_DELETE, ended
    assert "selects 22 of 2,523 entries" in ended.out
    assert "other/7" in down.run("plan", down.name, "--filter", "- /other/", "--list").out
    assert "2,501 of 2,523 entries would be deleted" in ended.err
    assert down.run(*command, "--max-delete", "2501").code == 0
    down.configure(filter=("- /other/",))
    ended = down.sync("--json")
    assert ended.code == 25, ended
    assert (down.dest / "other" / "7").exists()
    settings = TreeSettings.parse(down.state.filter)
    assert (settings.modes, settings.rules) == (Modes.SAFE, "")
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


TREE = tree_of(
    *b"a b/a b/b/a b/b/c b/ab/aab/c c/dists/x/Release c/dists/Release".split(),
    *b"c/pool/x.iso c/pool/x.deb foo foobar bar/foo bar/foo.o".split(),
    *b"foo.d/bar foo.d/x/bar foo.d/x/y/bar d/foo.d/x.c e/empty/".split(),
    *(b"back\\slash", b"star*", b"odd/[x]", b"odd/]", b"odd/-", b"odd/!", b"odd/^", b"odd/a-c"),
    *(b"un/pri\nntable", b"un/\xff\xfe", b"un/\x01", b"un/ blank ", b"un/_", b"un/#no", b"un/;no"),
    *(b"UPPER/Lower", b"un/tab\t", b"..b/...", b".hidden/.x", b"deep/1/2/3/4/5", b"deep/1/x/3/x/5"),
)

CLASSES = (
    *("alnum", "alpha", "blank", "cntrl", "digit", "graph"),
    *("lower", "print", "punct", "space", "upper", "xdigit"),
)

TABLE = {
    "a slash in the middle does not anchor": b"- foo.d/x.c",
    "two stars match nothing too": b"- /deep/**5",
    "trailing three stars, not anchored": b"- foo.d/***",
    "three stars in the middle": b"- /deep/***/5",
    "three stars and a slash": b"- /deep/***/",
    "four stars": b"- ****o",
    "a slash alone": b"- /",
    "backslash before wildcard": b"- back\\\\sl?sh",
    "backslash that is lost": b"- back\\sl?sh",
    "escaped star and a wildcard": b"- st?r\\*",
    "trailing backslash": b"- *\\",
    "range backwards": b"- odd/[z-!]",
    "range to the end": b"- odd/[a-]*",
    "escaped range end": b"- odd/[[-\\]]",
    "range after a class": b"- odd/a[[:punct:]-z]c",
    "named classes": b"- [[:upper:]][[:upper:][:digit:]]*",
    **{f"named class, {name}": b"- [[:%b:]]*" % name.encode() for name in CLASSES},
    **{f"named class at an end, {name}": b"- un/*[[:%b:]]" % name.encode() for name in CLASSES},
    "unknown class": b"- odd/[[:nope:]]",
    "class without an end": b"- odd/[x",
    "named class without an end": b"- odd/[[:x",
    "slash in a class": b"- odd[/]-",
    "stars in a class": b"- od[**d]/-",
    "name with newline": b"- pri\nntable",
    "any byte": b"- un/?\xfe",
    "blanks belong to the pattern": b"-  blank ",
    "underscore for blank": b"-_ blank ",
    "underscore as pattern": b"- _",
    "long name": b"exclude foo",
    "long name, underscore, modifiers": b"exclude,s_foo",
    "comma": b"-,s foo",
    "negated, directories": b"-! */",
    "negated, anchored": b"-! /b/***",
}

RULES = {
    **{name: [rule] for name, rule in TABLE.items()},
    "first match wins": [b"+ foo", b"- foo*"],
    "only some": [b"+ /c/", b"+ /c/dists/***", b"- *"],
    "the parent is left out": [b"- /c/", b"+ /c/dists/***"],
    "the parent is missing from the includes": [b"+ /c/dists/***", b"- *"],
    "directories and sources": [b"+ */", b"+ *.c", b"- *"],
    "clear": [b"- *", b"!", b"- foo"],
    "clear, long": [b"- *", b"clear", b"- foo"],
    "show and hide": [b"S foo.d/", b"H foo*", b"R *", b"P *"],
    "nothing": [],
}

DELETIONS = {
    "nothing said": [],
    "excluded": [b"- /b/***", b"- foo*"],
    "excluded, both sides by name": [b"-sr /b/***", b"-rs foo*"],
    "protected": [b"P c", b"P foo*"],
    "protected below what goes": [b"P /b/b/c", b"P bar"],
    "hidden and protected": [b"H /b/", b"P /b/b/a"],
    "hidden, protected directory": [b"H /b/", b"P /b/"],
    "risk before protect": [b"R /b/b/", b"P /b/***", b"H /b/***"],
    "all but": [b"P! *.d/", b"H *"],
}


def parse(rules: list[bytes], *, delete_excluded: bool = True) -> Rules:
    parser = Parser(delete_excluded=delete_excluded)
    parser.filter_all(rules, "rule")
    return Rules(parser.rules)


def test_selected_paths() -> None:
    for rules in RULES.values():
        assert selected(TREE, parse(rules)) == copied(TREE, *options_of(rules))


@pytest.mark.parametrize("delete_excluded", [False, True])
@pytest.mark.parametrize("rules", DELETIONS.values(), ids=DELETIONS)
def test_deleted_paths(rules: list[bytes], delete_excluded: bool) -> None:
    source = tree_of(b"foo.d/bar", b"bar/foo.o", b"b/a", b"c/new")
    option = b"--delete-excluded" if delete_excluded else b"--delete"
    by_rsync = copied(source, option, *options_of(rules), onto=TREE)
    assert left_over(source, TREE, parse(rules, delete_excluded=delete_excluded)) == by_rsync


RULE_FILE = (
    b"# a comment\n; another\n\n+ foo\r\n- foo*\n- un/\rH /c/***\n- #no\n- d\n!\n- b\n+ c\n- d"
)
PATTERN_FILE = b"#no\n;no\nfoo\n+ foo.d\n- b\n\xff\xfe\r\n /c\n!\nbar\n!x\n#no"


@pytest.mark.parametrize("mark", [b". ", b"merge ", b".s ", b"merge,_"])
def test_a_merged_file(mark: bytes) -> None:
    # A side is named either by the rule that merges or by those in the file.
    text = RULE_FILE.replace(b"H ", b"- ") if mark == b".s " else RULE_FILE
    with rule_file(text) as name:
        rule = mark + name
        read = {name: text}.__getitem__
        assert selected(TREE, Rules.parse([rule], read)) == copied(TREE, b"--filter=" + rule)


def test_a_merged_file_of_bare_patterns() -> None:
    for mark in (b".- ", b".+ ", b".-s ", b"merge,- "):
        with rule_file(PATTERN_FILE) as name:
            rules = [mark + name, b"- *.d"]
            read = {name: PATTERN_FILE}.__getitem__
            assert selected(TREE, Rules.parse(rules, read)) == copied(TREE, *options_of(rules))


def test_a_side_for_a_merged_file_and_the_files_in_it() -> None:
    with rule_file(b"- b\n- c/pool") as inner, rule_file(b"- foo*\n. " + inner) as outer:
        read = {inner: b"- b\n- c/pool", outer: b"- foo*\n. " + inner}.__getitem__
        for mark in (b".r ", b".s ", b".rs ", b". "):
            source = tree_of(b"c/x")
            by_rsync = copied(source, b"--delete", b"--filter=" + mark + outer, onto=TREE)
            parser = Parser(read)
            parser.filter(mark + outer)
            assert left_over(source, TREE, Rules(parser.rules)) == by_rsync


def test_options_of_a_command_line() -> None:
    with rule_file(PATTERN_FILE) as name:
        parser = Parser({name: PATTERN_FILE}.__getitem__)
        parser.include(b"foo.d")
        parser.exclude(b"+ foo.o")
        parser.include(b"- d")
        parser.exclude_from(name)
        parser.include_from(name)
        parser.exclude(b"c/**")
        parser.filter(b"- f*")
        options = [b"--include=foo.d", b"--exclude=+ foo.o", b"--include=- d"]
        options += [b"--exclude-from=" + name, b"--include-from=" + name]
        options += [b"--exclude=c/**", b"--filter=- f*"]
        assert selected(TREE, Rules(parser.rules)) == copied(TREE, *options)


def test_rules_that_rsync_refuses() -> None:
    for rule in (
        *(b"foo", b"-foo", b"-", b"- ", b"+", b"-,", b"!x", b"! ", b"clear x", b"exclude"),
        *(b"excludefoo", b"-Q x", b"Hs x", b"Pr x", b". ", b"-,,s x", b".! x", b"+-s x"),
        *(b"protect,r x", b" - x", b"\t", b"exclude\tx", b".-+ x", b"merge"),
    ):
        with pytest.raises(FilterError), rule_file(b"") as name:
            Parser(lambda _: b"").filter(rule.replace(b" x", b" " + name))
        with pytest.raises(subprocess.CalledProcessError):
            copied({}, b"--filter=" + rule)
