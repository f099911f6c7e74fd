"""A record is read back or counts as missing; an unreadable one that is needed is an error."""

from pathlib import Path

import msgspec
import pytest

from huai_program.record_file import RecordFile


class Value(msgspec.Struct, frozen=True):
    number: int
    raw: bytes = b""


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "record"
    for value in (Value(1, b"\xff"), Value(2)):
        RecordFile(Value, permissions=0o640).save(path, value)
        assert RecordFile(Value).load(path) == value
        assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in tmp_path.iterdir()] == ["record"]


def test_what_is_torn_or_of_another_kind_counts_as_none(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    path = tmp_path / "record"
    assert RecordFile(Value).load(path) is None
    for content in (b"", b'{"number": 1', b'{"number": "1"}', b"[" * 100_000, b'{"a":"\xff"}'):
        with subtests.test(content=content[:20]):
            path.write_bytes(content)
            assert RecordFile(Value).load(path) is None


def test_what_cannot_be_read_is_an_error_where_it_is_needed(tmp_path: Path) -> None:
    assert RecordFile(Value, needed=False).load(tmp_path) is None
    with pytest.raises(IsADirectoryError):
        RecordFile(Value).load(tmp_path)
