"""Digests of what arrives from an upstream that states none, with huai or without."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain, count
from pathlib import Path
from typing import Any

import pytest

from huai_client.publish import equal_files
from huai_client.publish.executor import execute
from huai_client.run.options import Deadline
from huai_client.state.state import StateError
from huai_client.sync import apply
from huai_client.tree import View
from huai_client.tree.hashing import digest_of
from huai_client.verify import jobs
from huai_client.verify.queue import VerifyRequest
from huai_client.verify.segments import Comparison
from huai_schema.errors import ExitCode
from huai_schema.paths import RelPath
from tests.integration.test_list_command import without_links
from tests.support.plain_upstream import Place, Plain, differences, serving_plainly
from tests.support.relaying import relaying
from tests.support.upstream import T0, Downstream
from tests.support.verifying import (
    bit_by_bit,
    differing_paths,
    patrol,
    spoil,
    totals,
)


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


def test_a_downstream_of_a_relay_has_its_own(plain: Place, tmp_path: Path) -> None:
    up, down = synced(plain)
    with relaying(down, tmp_path) as relay:
        relay.handed()
        below = relay.downstream()
        below.synced()
        assert differences(up, below) == ""
        assert checked(below) == ([], 10, 0)
        spoil(below, "pool/1")
        assert checked(below) == (["pool/1"], 10, 0)
        assert checked(down) == ([], 10, 0)


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
    for name in (b"a/one", b"a/two", b"b/three", b"other", b"kept/protected"):
        up.put(name, b"equal")
    up.at(b"other").chmod(0o600)
    up.put(b"later", b"equal", mtime=T0 + 1)
    up.put(b"empty/1", b"")
    up.put(b"empty/2", b"")
    down = plain.downstream(up, duplicates="hardlink")
    one, two, three = (down.dest / name for name in ("a/one", "a/two", "b/three"))

    def inodes() -> list[int]:
        return [path.stat().st_ino for path in (one, two, three)]

    down.synced()
    assert len({*inodes()}) == 1
    assert one.stat().st_nlink == 4, "one of another mode or time stays apart"
    assert (down.dest / "empty/1").stat().st_nlink == 1
    assert without_links(up, down) == ""
    up.put(b"c/four", b"equal")
    down.synced()
    assert (down.dest / "c/four").samefile(one), "one that is here already has another name"
    up.put(b"a/two", b"EQUAL", mtime=T0 + 2)
    up.at(b"b/three").chmod(0o640)
    down.synced()
    assert (one.read_bytes(), two.read_bytes()) == (b"equal", b"EQUAL")
    assert without_links(up, down) == ""
    assert checked(down)[0] == []
    spoil(down, "a/one")
    up.put(b"c/five", b"equal")
    down.synced()
    assert (down.dest / "c/five").read_bytes() == b"equal", "a damaged file gets no other name"
    down.configure(duplicates="copy")
    assert down.verify("--content", "--repair").code == 0
    down.synced()
    assert one.stat().st_nlink == 1
    assert without_links(up, down) == ""


def test_equal_files_of_a_run_that_fails_become_hardlinks(plain: Place) -> None:
    up = plain.upstream()
    for name in (b"1", b"2"):
        up.put(name, b"equal")
        up.at(name).chmod(0o666)  # not as `modes` makes it
    up.put(b"x", b"there is a directory in its place")
    down = plain.downstream(up, duplicates="hardlink")
    (down.dest / "x").mkdir()
    (down.dest / "x/own").touch()
    assert down.sync().code == ExitCode.PARTIAL
    assert (down.dest / "1").samefile(down.dest / "2")


def linking(
    plain: Place, monkeypatch: pytest.MonkeyPatch, act: Callable[[Downstream, int], object]
) -> Downstream:
    """Link two equal files, and call `act` with the number of each that was read, once it was."""
    up = plain.upstream()
    up.put(b"1", b"equal")
    down = plain.downstream(up, duplicates="hardlink")
    down.synced()
    up.put(b"2", b"equal")
    real, calls = digest_of, count(1)

    def digest_and_act(handle: int) -> bytes:
        digest = real(handle)
        act(down, next(calls))
        return digest

    monkeypatch.setattr(equal_files, "digest_of", digest_and_act)
    assert down.sync().code == 0
    assert next(calls) == 3, "both were read"
    assert not (down.dest / ".~tmp~").exists()
    return down


@pytest.mark.parametrize("changed", ["1", "2"])
@pytest.mark.parametrize("how", ["content", "replaced", "mode"])
def test_a_file_that_changes_before_it_is_linked_stays_apart(
    plain: Place, monkeypatch: pytest.MonkeyPatch, changed: str, how: str
) -> None:
    def change(down: Downstream, read: int) -> None:
        if read != 2:
            return
        file = down.dest / changed
        if how == "content":
            spoil(down, changed)
        elif how == "replaced":
            (down.dest / "new").write_bytes(b"other")
            (down.dest / "new").replace(file)
        else:
            file.chmod(0o600)

    down = linking(plain, monkeypatch, change)
    one, two = down.dest / "1", down.dest / "2"
    assert not one.samefile(two)
    content, mode = {"content": (b"XXXXX", 0o644), "replaced": (b"other", 0o644)}.get(
        how, (b"equal", 0o600)
    )
    file, untouched = (one, two) if changed == "1" else (two, one)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (content, mode)
    assert untouched.read_bytes() == b"equal"


def test_a_wrong_digest_links_nothing(plain: Place) -> None:
    up = plain.upstream()
    up.put(b"1", b"equal")
    up.put(b"other", b"EQUAL")
    down = plain.downstream(up, duplicates="hardlink")
    down.synced()
    (record,) = down.root.rglob("seen")
    with closing(sqlite3.connect(record)) as db:
        (digest,) = db.execute("SELECT digest FROM seen WHERE path = ?", (b"1",)).fetchone()
        db.execute("UPDATE seen SET digest = ? WHERE path = ?", (digest, b"other"))
        db.execute("DELETE FROM seen WHERE path = ?", (b"1",))
        db.commit()
    up.put(b"2", b"equal")
    down.synced()
    assert (down.dest / "other").read_bytes() == b"EQUAL"
    assert (down.dest / "2").read_bytes() == b"equal"
    assert without_links(up, down) == ""


def fail_after_execution(down: Downstream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a sync that changes the tree, and ends then."""

    def execute_and_fail(*arguments: Any) -> None:
        execute(*arguments)
        raise StateError("the run ends here", hint="run again")

    with monkeypatch.context() as patched:
        patched.setattr(apply, "execute", execute_and_fail)
        assert "the run ends here" in down.sync().err


@pytest.mark.parametrize("former", ["directory", "symlink", "link"])
def test_a_reused_file_has_no_digest_of_an_older_one_at_its_path(
    plain: Place, former: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = plain.upstream()
    up.many(b"many", 10)
    up.put(b"path", b"first")
    up.put(b"elsewhere/path", b"again")
    down = plain.downstream(up)
    down.synced()
    up.at(b"path").unlink()
    if former == "directory":
        up.put(b"path/file", b"content")
    elif former == "symlink":
        up.at(b"path").symlink_to(b"many/1")
    else:
        os.link(up.at(b"many/1"), up.at(b"path"))
    fail_after_execution(down, monkeypatch)
    down.synced()
    if former == "directory":
        up.at(b"path/file").unlink()
        up.at(b"path").rmdir()
    up.at(b"elsewhere/path").rename(up.at(b"path"))
    down.synced()
    assert (down.dest / "path").read_bytes() == b"again"
    assert checked(down) == ([], 11, 0)


def test_a_link_that_becomes_a_file_has_no_digest_of_an_older_one(
    plain: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = plain.upstream()
    up.many(b"many", 10)
    up.put(b"path", b"first")
    up.put(b"leader", b"other")
    down = plain.downstream(up)
    down.synced()
    up.at(b"path").unlink()
    os.link(up.at(b"leader"), up.at(b"path"))
    fail_after_execution(down, monkeypatch)
    down.synced()
    up.at(b"leader").unlink()
    down.synced()
    assert (down.dest / "path").read_bytes() == b"other"
    assert checked(down) == ([], 10, 1)


def test_files_that_arrive_in_a_moved_directory_are_compared(plain: Place) -> None:
    up = plain.upstream()
    up.many(b"large", 200)
    down = plain.downstream(up)
    down.synced()
    up.at(b"large").rename(up.at(b"renamed"))
    up.put(b"renamed/7", b"another")
    up.put(b"renamed/new", b"new")
    down.synced("--max-delete=100%")
    assert checked(down) == ([], 201, 0)


def test_a_path_is_reported_once_and_counted_once(plain: Place) -> None:
    _, down = synced(plain)
    spoil(down, "pool/1")
    (down.dest / "pool/1").chmod(0o600)
    (down.dest / "pool/2").unlink()
    (down.dest / "pool/3").write_bytes(b"")
    ended = down.run("verify", down.name, "--content", "--json")
    events = [event for event in ended.events("difference") if event["path"] != "pool"]
    assert sorted(event["path"] for event in events) == ["pool/1", "pool/2", "pool/3"]
    assert [each["attributes"] for each in events if each["path"] == "pool/1"] == [
        ["digest", "mode"]
    ]
    tally = totals(ended)
    assert (tally["files"], tally["read"], tally["seen"], tally["undigested"]) == (10, 8, 8, 0)


def test_a_run_stops_at_its_deadline_and_the_next_goes_on(
    plain: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "BATCH", 1)
    _, down = synced(plain)
    spoil(down, "pool/2")
    spoil(down, "pool/deep/2")
    run, differences = patrol(down, VerifyRequest(content=True, deadline=Deadline(0.0)))
    run.run(wait=0)
    assert run.left
    assert run.tally.hashed <= 1
    assert (run.tally.seen_files, run.tally.undigested) == (run.tally.hashed, 0)
    differences += chain.from_iterable(bit_by_bit(down, 3, content=True))
    assert sorted(each.path for each in differences) == [b"pool/2", b"pool/deep/2"]


def test_a_changed_state_file_starts_nothing_over(
    plain: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "BATCH", 1)
    _, down = synced(plain)
    spoil(down, "pool/2")
    spoil(down, "pool/deep/4")
    (state,) = down.root.rglob("state.json")
    real, opened = View.open_file, count(1)

    def open_file(view: View, path: RelPath) -> int:
        if next(opened) in (4, 9):
            state.with_name("new").write_bytes(state.read_bytes())
            state.with_name("new").replace(state)
        return real(view, path)

    monkeypatch.setattr(View, "open_file", open_file)
    run, differences = patrol(down, VerifyRequest(content=True))
    monkeypatch.setattr(Comparison, "_pauses", lambda *_: True)
    run.run(wait=0)
    assert not run.left
    assert sorted(each.path for each in differences) == [b"pool/2", b"pool/deep/4"]
    assert run.tally.hashed == 12, "only the files at the changes are read twice"


def test_a_record_that_cannot_be_opened_does_not_end_a_sync(plain: Place) -> None:
    up, down = synced(plain)
    (record,) = down.root.rglob("seen")
    record.unlink()
    record.mkdir()
    up.put(b"pool/1", b"another")
    ended = down.sync()
    assert ended.code == 0
    assert "without digests of what arrives" in ended.err
    assert differences(up, down) == ""
    spoil(down, "pool/2")
    ended = down.verify("--content")
    assert ended.code == 0, ended
    assert "without the digests seen on arrival: " in ended.err
    assert "10 files have no digest" in ended.err
    record.rmdir()
    assert checked(down) == ([], 0, 10)
