"""The lock of a module: an obstacle is reported with a hint."""

import errno
import os
from pathlib import Path

import pytest

from huai_client.state import state
from huai_client.state.paths import module_places
from huai_client.state.state import StateError, module_lock


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (errno.ENOSPC, "free some space there, or inodes"),
        (errno.EIO, "the disk fails"),
        (errno.EROFS, "read-only"),
        (errno.EISDIR, "move away what is"),
        (errno.EACCES, "run as the user that the state belongs to"),
    ],
)
def test_the_hint_follows_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, hint: str
) -> None:
    places = module_places(tmp_path, "m")

    class Failing:
        def __enter__(self) -> None:
            raise OSError(code, os.strerror(code), str(places.lock))

    monkeypatch.setattr(state, "locked", lambda *_, **__: Failing())
    with pytest.raises(StateError) as raised, module_lock(places, wait=0):
        pass
    assert raised.value.message == f"{places.lock}: {os.strerror(code)}"
    assert hint in raised.value.hint


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "modules").write_text("")
    with pytest.raises(StateError) as raised, module_lock(module_places(tmp_path, "m"), wait=0):
        pass
    assert raised.value.message.startswith(f"{tmp_path / 'modules'}")
    assert "move away what is" in raised.value.hint
