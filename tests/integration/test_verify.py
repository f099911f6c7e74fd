"""`verify`: in parts, of one path, of a sample; what it tells, and what is kept on purpose."""

import os
import sqlite3
from pathlib import Path

import pytest

from huai_client.diff.candidate import Difference, DifferenceKind
from huai_client.diff.candidates import diff_damage
from huai_client.metadata.repository import Repository
from huai_client.plan.build import applied_selection
from huai_client.state.paths import module_places
from huai_client.tree import View
from huai_schema.git.objects import Kind
from huai_schema.paths import RelPath
from tests.support.upstream import T0, Downstream, Pair, Site, Upstream, assert_equal
from tests.support.verifying import cut, differing_paths, spoil, standing, totals

DIRECTORIES = (b"a", b"b", b"c/d", b"c/e")
"""Each a part of its own: it has more entries than a manifest holds of a subdirectory."""
FILES = 150


@pytest.fixture(name="pair")
def synced_pair(place: Site) -> Pair:
    up = place.upstream()
    for folder in DIRECTORIES:
        up.many(folder, FILES)
    up.many(b"small", 5)
    up.put(b"file", b"content")
    return up, place.synced_downstream(up)


def record(down: Downstream) -> Path:
    return module_places(down.root, down.name).verified


def test_all_of_it(pair: Pair) -> None:
    _, down = pair
    ended = down.verify("--json")
    assert differing_paths(ended) == []
    assert totals(ended)["entries"] == 1 + 6 + 4 * FILES + 5 + 1
    assert totals(ended)["files"] == 4 * FILES + 6
    assert (totals(ended)["read"], totals(ended)["left"]) == (0, 0)
    assert totals(down.verify("--json", "--content"))["read"] == 4 * FILES + 6
    text = down.verify("--content")
    assert "equals the applied commit" in text.err
    assert "606 files read" in text.err
    for path in ("a/7", "c/e/149", "small/2", "file"):
        cut(down, path)
    assert differing_paths(down.verify("--json")) == ["a/7", "c/e/149", "file", "small/2"]


IN_ONE_PATH = {
    "a": ["a/7"],
    "c": ["c/d/1", "c/e/2"],
    "c/e": ["c/e/2"],
    "small": ["small/3"],
    "small/3": ["small/3"],
    "small/4": [],
    "b": [],
    "unknown": ["unknown", "unknown/in"],
    ".": ["a/7", "c/d/1", "c/e/2", "small/3", "unknown", "unknown/in"],
}


def test_one_path(pair: Pair, subtests: pytest.Subtests) -> None:
    _, down = pair
    for damaged in ("a/7", "c/d/1", "c/e/2", "small/3"):
        cut(down, damaged)
    (down.dest / "unknown").mkdir()
    (down.dest / "unknown" / "in").touch()
    os.utime(down.dest, ns=(T0, down.dest.stat().st_mtime_ns))
    for path, expected in IN_ONE_PATH.items():
        with subtests.test(path):
            paths = differing_paths(down.verify("--json", "--path", path))
            assert [name for name in paths if name != "."] == expected


def test_paths_and_shares_that_are_wrong(pair: Pair, subtests: pytest.Subtests) -> None:
    _, down = pair
    paths = ("nothing", "a/nothing", "file/below", ".~tmp~", "/elsewhere")
    shares = ("0%", "101%", "1", "-1%", "x%", "%")
    for option, values in (("--path", paths), ("--sample", shares)):
        for value in values:
            with subtests.test(option=option, value=value):
                assert down.verify(option, value).code == 1


def test_a_path_below_dest_can_be_verified_and_repaired(pair: Pair) -> None:
    _, down = pair
    cut(down, "a/8")
    assert differing_paths(down.verify("--json", "--path", f"{down.dest}/a/8")) == ["a/8"]
    (down.dest / "b" / "1").unlink()
    assert differing_paths(down.verify("--json", "--path", "b/1")) == ["b/1"]
    assert down.verify("--repair").code == 0
    spoil(down, "a/7")
    spoil(down, "b/7")
    assert down.verify("--content", "--path", "a/7", "--repair").code == 0
    assert differing_paths(down.verify("--content", "--json")) == ["b/7"]


def test_a_sample(pair: Pair) -> None:
    _, down = pair
    for number in range(FILES):
        spoil(down, f"a/{number}")
    one = down.verify("--json", "--content", "--sample", "20%", "--seed", "1")
    assert 0 < totals(one)["differences"] < FILES
    assert 0.1 * 606 < totals(one)["read"] == totals(one)["entries"] < 0.3 * 606
    assert differing_paths(one) == differing_paths(
        down.verify("--json", "--content", "--sample", "20%", "--seed", "1")
    )
    assert differing_paths(one) != differing_paths(
        down.verify("--json", "--content", "--sample", "20%", "--seed", "2")
    )
    every = down.verify("--json", "--content", "--sample", "100%")
    assert totals(every)["differences"] == FILES
    assert totals(every)["read"] == 606
    assert down.verify("--sample", "100%").code == 0  # nothing was read
    (down.dest / "b" / "1").unlink()
    assert differing_paths(down.verify("--json", "--sample", "100%")) == ["b/1"]


def test_a_sample_says_nothing_of_the_parts(pair: Pair) -> None:
    _, down = pair
    cut(down, "file")
    assert down.verify("--sample", "100%").code == 47
    assert standing(down)["metadata"]["never"] == standing(down)["parts"]
    assert standing(down)["damaged"] == 0
    (down.dest / "unknown").touch()
    assert down.verify().code == 47
    assert standing(down)["damaged"] == 3
    assert down.verify("--sample", "100%", "--repair").code == 0
    assert standing(down)["damaged"] == 3


def test_a_disk_that_is_not_mounted(pair: Pair) -> None:
    _, down = pair
    down.dest.rename(down.dest.with_name(f"{down.dest.name}-away"))
    down.dest.mkdir()
    for options in ((), ("--repair",), ("--path", "a"), ("--sample", "1%")):
        ended = down.verify(*options)
        assert ended.code == 52, ended
        assert "mounted" in ended.err
        assert [*down.dest.iterdir()] == []
        assert standing(down)["damaged"] == 0


def test_files_without_digests_are_counted(place: Site) -> None:
    up = place.upstream(digest="off")
    up.many(b"folder", 5)
    down = place.synced_downstream(up)
    (seen_on_arrival,) = down.root.rglob("seen")
    seen_on_arrival.unlink()
    ended = down.verify("--content", "--json")
    assert ended.code == 0
    assert (totals(ended)["undigested"], totals(ended)["read"]) == (5, 0)
    assert "5 files have no digest" in ended.err
    assert "digest" not in down.verify().err


def test_a_record_that_is_damaged_begins_again(pair: Pair) -> None:
    _, down = pair
    assert down.verify().code == 0
    for content in (b"garbage" * 1000, b"", b"SQLite format 3\0" + b"\xff" * 5000):
        record(down).write_bytes(content)
        assert down.run("status").code == 0
        assert down.verify().code == 0
        assert standing(down)["metadata"]["never"] == 0
    with sqlite3.connect(record(down)) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    assert down.verify().code == 0
    assert standing(down)["metadata"]["never"] == 0


def test_mending_much_reads_each_directory_once(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    up, down = pair
    for path in (down.dest / "a").iterdir():
        path.unlink()
    (down.dest / "small" / "3").unlink()
    (down.dest / "b" / "3").chmod(0o600)
    damage = [
        Difference(
            RelPath(event["path"].encode().replace(b".", b"")), DifferenceKind(event["difference"])
        )
        for event in down.verify("--json").events("difference")
    ]
    assert len(damage) > FILES
    count = 0
    real = Repository.read

    def read(self: Repository, oid: bytes, kind: Kind) -> bytes:
        nonlocal count
        count += 1
        return real(self, oid, kind)

    state = down.state
    assert state.applied
    commit = Repository(down.repository, make=False).commit(state.applied)
    with monkeypatch.context() as patch, View(down.dest) as view:
        patch.setattr(Repository, "read", read)
        selection = applied_selection(commit, state)
        diff = diff_damage(view, damage, selection, delete_extraneous=False)
    assert len(diff.candidates) == len(damage)
    assert all(candidate.expected is not None for candidate in diff.candidates)
    assert count < 30
    assert down.verify("--repair").code == 0
    assert_equal(up, down)


@pytest.fixture(name="up")
def committed(place: Site) -> Upstream:
    up = place.upstream()
    for folder in (b"a", b"b"):
        up.many(folder, FILES)
    up.put(b"one", b"the same content")
    up.put(b"two", b"the same content")
    up.at(b"out").symlink_to("/elsewhere")
    up.commit()
    return up


def differences(down: Downstream, *options: str) -> list[str]:
    """Return what differs, except the time of the top directory."""
    return [path for path in differing_paths(down.verify("--json", *options)) if path != "."]


def test_a_filter(place: Site, up: Upstream) -> None:
    down = place.downstream(up, filter=("- /b/", "- /a/7"))
    down.synced()
    assert differences(down, "--content") == []
    assert standing(down)["parts"] == 2
    (down.dest / "b").mkdir()
    (down.dest / "b" / "unknown").touch()
    (down.dest / "a" / "7").touch()
    assert differences(down) == ["a", "a/7", "b", "b/unknown"]
    assert differences(down, "--path", "b") == ["b", "b/unknown"]
    assert differences(down, "--sample", "100%") == []
    assert down.verify("--repair", "--delete-extraneous").code == 0
    down.configure(filter=())
    down.synced()
    assert standing(down)["parts"] == 3
    assert differences(down, "--content") == []
    assert standing(down)["content"]["never"] == 0
    down.configure(filter=("- /a/",))
    down.synced()
    assert standing(down)["parts"] == 2
    assert differences(down) == []


def test_what_is_protected(place: Site, up: Upstream) -> None:
    down = place.downstream(up, protect=("/a/7", "*.local", "/b/"))
    down.synced()
    cut(down, "a/8")
    (down.dest / "a" / "7").write_bytes(b"mine")
    (down.dest / "a" / "x.local").write_bytes(b"mine")
    (down.dest / "b").mkdir(exist_ok=True)
    (down.dest / "b" / "0").write_bytes(b"mine")
    assert differences(down, "--content") == ["a/8"]
    assert differences(down, "--content", "--sample", "100%") == ["a/8"]
    assert down.verify("--repair", "--delete-extraneous").code == 0
    assert (down.dest / "a" / "x.local").read_bytes() == b"mine"
    assert (down.dest / "a" / "7").read_bytes() == b"mine"
    assert standing(down)["damaged"] == 0


def test_what_is_kept_on_purpose(place: Site, up: Upstream) -> None:
    down = place.downstream(up, safe_links=True, duplicates="hardlink", delete_after="1h")
    down.synced()
    assert not (down.dest / "out").is_symlink()
    (down.dest / "two").unlink()
    os.link(down.dest / "one", down.dest / "two")
    os.utime(down.dest, ns=(T0, up.tree.stat().st_mtime_ns))
    up.at(b"a/7").unlink()
    up.commit()
    down.synced()
    assert (down.dest / "a" / "7").exists()
    assert differences(down, "--content") == []
    (down.dest / "unknown").symlink_to("/elsewhere")
    assert differences(down) == ["unknown"]
    (down.dest / "unknown").unlink()
    down.configure(duplicates="copy")
    assert len(differences(down, "--content")) == 1


def test_after_an_undo(place: Site, up: Upstream) -> None:
    down = place.downstream(up, trash="1d")
    down.synced()
    assert down.verify("--content").code == 0
    up.put(b"a/7", b"newer")
    up.commit()
    down.synced()
    assert standing(down)["content"]["changed"] == 1
    assert down.run("undo", down.name).code == 0
    assert differences(down, "--content") == []
    assert standing(down)["current"] is True
    assert standing(down)["content"]["changed"] == 0
