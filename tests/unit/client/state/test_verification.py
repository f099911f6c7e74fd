"""The record of verified parts: for paths of any bytes, and as small as possible."""

import sqlite3
from pathlib import Path

import pytest

from huai_client.state.state import StateError
from huai_client.state.verification import KnownPart, Unfinished, VerificationRecord
from huai_client.verify.summary import read_account
from tests.support.local_trees import at

ONE = KnownPart(b"t" * 20, b"i" * 16)
OTHER = KnownPart(b"T" * 20, b"I" * 16)
ELSEWHERE = KnownPart(b"T" * 20, b"i" * 16)
"""The ids of a part after a change below it only."""
NAMES = (b"x", b"x-", b"x\1y", b"x\1", b"x\n", b"xa", b"\1", b"\xff" * 255, b"\xff")


def recorded(path: Path, *parts: bytes) -> VerificationRecord:
    record = VerificationRecord(path)
    add(record, *parts)
    record.begin_run()
    return record


def add(record: VerificationRecord, *parts: bytes) -> None:
    with record.writing():
        for part in parts:
            record.add(at(part), ONE)


def due(record: VerificationRecord, below: bytes = b"", *, content: bool = False) -> list[bytes]:
    return [*record.due(at(below), content=content, damaged_first=False, most=1000)]


def finish(
    record: VerificationRecord,
    path: bytes,
    began: int,
    ids: KnownPart = ONE,
    *,
    content: bool = False,
) -> None:
    with record.writing():
        record.record_finished(Unfinished(at(path), began, b"", 0), ids.identity, content=content)


def test_paths_of_any_bytes(tmp_path: Path) -> None:
    below = [b"x/" + name for name in NAMES] + [b"x/x/" + name for name in NAMES]
    with recorded(tmp_path / "r", b"", *NAMES, *below) as record:
        assert {*record.children(at(b""))} == {*NAMES}
        assert {*record.children(at(b"x"))} == {b"x/" + name for name in NAMES}
        assert {*record.children(at(b"x/x"))} == {b"x/x/" + name for name in NAMES}
        assert [*record.children(at(b"x\1"))] == []
        assert {*due(record, b"x")} == {b"x", *below}
        assert due(record, b"x\1") == [b"x\1"]
        assert {*due(record)} == {b"", *NAMES, *below}
        assert record.left(at(b"x/x")) == 1 + len(NAMES)
        with record.writing():
            record.drop(at(b"x"))
        assert {*due(record)} == {b"", *NAMES} - {b"x"}


def test_the_longest_ago_first(tmp_path: Path) -> None:
    with recorded(tmp_path / "r", b"a", b"b", b"c", b"d") as record:
        for path, began in ((b"a", 30), (b"b", 10), (b"c", 20)):
            finish(record, path, began)
        assert due(record) == [b"d"]
        record.begin_run()
        assert due(record) == [b"d", b"b", b"c", b"a"]
        finish(record, b"b", 40, content=True)
        assert due(record) == [b"d", b"c", b"a"]
        assert due(record, content=True) == [b"a", b"c", b"d"]
        with record.writing():
            record.change(at(b"a"), OTHER)  # does not bring it forward
        assert due(record) == [b"d", b"c", b"a"]


def test_a_clock_that_went_back_hides_nothing(tmp_path: Path) -> None:
    with recorded(tmp_path / "r", b"a", b"b") as record:
        finish(record, b"a", 1 << 40)
        finish(record, b"b", 1 << 40)
        record.begin_run()
        assert due(record) == [b"a", b"b"]


def test_what_a_commit_changes(tmp_path: Path) -> None:
    place = tmp_path / "r"
    with recorded(place, b"a", b"b", b"c") as record:
        for path in (b"a", b"b"):
            finish(record, path, 7, content=True)
        with record.writing():
            record.change(at(b"a"), OTHER)
            record.change(at(b"b"), ELSEWHERE)
            record.change(at(b"c"), OTHER)
            record.change(at(b"gone"), OTHER)
        assert record.find_part(at(b"a")) == OTHER
        assert record.find_part(at(b"b")) == ELSEWHERE
        assert record.find_part(at(b"gone")) is None
    run_log = read_account(place)
    assert run_log is not None
    parts = {top.path: (top.metadata, top.content) for top in run_log.tops}
    assert parts[at(b"a")] == ((0, 1, 0, 0),) * 2
    assert parts[at(b"b")] == ((0, 0, 7, 7),) * 2
    assert parts[at(b"c")] == ((1, 0, 0, 0),) * 2


def test_a_part_that_changed_while_it_was_looked_at(tmp_path: Path) -> None:
    place = tmp_path / "r"
    middle = Unfinished(at(b"a"), 7, b"\0x\0", 2)
    with recorded(place, b"a") as record:
        with record.writing():
            record.record_position(middle, content=False)
            record.change(at(b"a"), OTHER)
            record.record_position(middle._replace(position=b"\0y\0"), content=False)
        assert record.unfinished(content=False) == middle._replace(position=b"\0y\0")
        assert record.unfinished(content=True) is None
        finish(record, b"a", 7, OTHER)
        assert record.unfinished(content=False) is None
        assert read_account(place).total.metadata.changed == 1  # type: ignore[union-attr]
        with record.writing():
            record.record_position(middle, content=False)
            record.change(at(b"a"), ONE)
            record.record_position(middle._replace(began=9), content=False)  # from its beginning
        finish(record, b"a", 9)
        assert read_account(place).total.metadata.changed == 0  # type: ignore[union-attr]


def test_a_commit_that_comes_before_the_note(tmp_path: Path) -> None:
    place = tmp_path / "r"
    with recorded(place, b"a", b"b") as record:
        with record.writing():
            record.change(at(b"a"), OTHER)
        finish(record, b"a", 7, content=True)
        finish(record, b"b", 7, content=True)
    run_log = read_account(place)
    assert run_log is not None
    assert [top.content.changed for top in run_log.tops] == [1, 0]
    assert [top.metadata.oldest for top in run_log.tops] == [0, 7]


def test_a_part_that_goes_is_not_gone_on_with(tmp_path: Path) -> None:
    with recorded(tmp_path / "r", b"a", b"a/b") as record:
        with record.writing():
            record.record_position(Unfinished(at(b"a/b"), 7, b"\0x\0", 0), content=True)
            record.drop(at(b"a"))
        assert record.unfinished(content=True) is None


def test_nothing_half_is_written(tmp_path: Path) -> None:
    with recorded(tmp_path / "r", b"a") as record:
        with pytest.raises(StateError, match="UNIQUE"):
            add(record, b"b", b"a")  # the second one is there already
        assert due(record) == [b"a"]


def test_the_filter(tmp_path: Path) -> None:
    with VerificationRecord(tmp_path / "r") as record, record.writing():
        assert not record.record_applied("1", "")
        assert record.record_applied("2", "- x\n")
        assert not record.record_applied("3", "- x\n")
        assert record.record_applied("4", "")


def test_a_hundred_bytes_or_so_a_part(tmp_path: Path) -> None:
    place = tmp_path / "r"
    with recorded(
        place, *(b"directory/%08d/with/a/longer/path" % number for number in range(20000))
    ):
        pass
    assert place.stat().st_size < 150 * 20000


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="missing"):
        VerificationRecord(tmp_path / "missing" / "r")
    with recorded(tmp_path / "r", b"a") as record:
        (tmp_path / "r").write_bytes(b"garbage" * 1000)
        with pytest.raises(StateError, match="not a database"):
            finish(record, b"a", 1)


def test_what_is_no_record_is_none_for_status(tmp_path: Path) -> None:
    place = tmp_path / "what? 100% #"
    assert read_account(place) is None
    place.write_bytes(b"garbage" * 1000)
    assert read_account(place) is None
    place.write_bytes(b"")
    assert read_account(place) is None
    place.unlink()
    with recorded(place, b"a", b"a/b", b""):
        pass
    run_log = read_account(place)
    assert run_log is not None
    assert run_log.total.parts == 3
    assert [(top.path, top.parts) for top in run_log.tops] == [(b"", 1), (b"a", 2)]


def test_a_journal_of_a_record_that_is_thrown_away(tmp_path: Path) -> None:
    place = tmp_path / "r"
    place.write_bytes(b"garbage" * 1000)
    place.with_name("r-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(1000))
    with recorded(place, b"a") as record:
        assert due(record) == [b"a"]
    with sqlite3.connect(place) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
