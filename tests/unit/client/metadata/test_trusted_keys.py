"""Trusted keys: a damaged file is refused, because a stranger's key might be the next first one."""

import json
from pathlib import Path

import pytest

from huai_client.metadata.signatures import TrustedKeys, load_trusted, save_trusted
from huai_client.state.state import StateError
from huai_schema.codec.keys import Keys

TRUSTED = TrustedKeys(Keys(3, ("first", "second"), 2), ("anchor",))


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    assert load_trusted(tmp_path / "keys") is None
    save_trusted(tmp_path / "keys", TRUSTED)
    assert load_trusted(tmp_path / "keys") == TRUSTED


def test_a_damaged_file_is_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    file = tmp_path / "keys"
    save_trusted(file, TRUSTED)
    sound = json.loads(file.read_bytes())
    for text in (
        b"",
        file.read_bytes()[:-1],
        b"[" * 100_000,
        b"\xff",
        *(
            json.dumps({**sound, **changed}).encode()
            for changed in (
                {"version": 2},
                {"keys": None},
                {"keys": [1]},
                {"anchors": [None]},
                {"keys_version": "3"},
                {"keys_version": True},
                {"threshold": 0},
                {"threshold": None},
            )
        ),
    ):
        with subtests.test(text=text[:60]):
            file.write_bytes(text)
            with pytest.raises(StateError, match="not a file of trusted keys") as refused:
                load_trusted(file)
            assert "client.toml" in refused.value.hint


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="Is a directory"):
        load_trusted(tmp_path)
