"""Errors of a metadata repository that cannot be written."""

import os
from pathlib import Path

import pytest

from huai_client.metadata.repository import Repository, StoreError
from huai_program.disk_hints import DISK_HINTS


@pytest.mark.parametrize("code", DISK_HINTS)
def test_the_hint_of_a_disk_follows_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "mkdir", fail)
    with pytest.raises(StoreError, match=os.strerror(code)) as refused:
        Repository(tmp_path / "metadata.git")
    assert refused.value.hint == DISK_HINTS[code]
