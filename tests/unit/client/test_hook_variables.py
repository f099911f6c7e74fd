"""The environment of hooks."""

from pathlib import Path

import pytest

from huai_client.hooks.changes import Changes
from huai_client.hooks.hooks import ended_variables
from huai_client.state.history import RunRecord


@pytest.mark.parametrize(
    ("reason", "printed"),
    [
        ("", ""),
        ("ends with 11: disk \u00fc", "ends with 11: disk \u00fc"),
        ("a\0b\nFAKE=1\r\x1b[2J", "a\\x00b\\nFAKE=1\\r\\x1b[2J"),
    ],
)
def test_the_reason_is_one_plain_line(tmp_path: Path, reason: str, printed: str) -> None:
    record = RunRecord(kind="sync", time=0, reason=reason)
    assert ended_variables(record, Changes(tmp_path, listed=False))["HUAI_REASON"] == printed
