"""The lock of a module: an obstacle is reported with a hint."""

from pathlib import Path

import pytest

from huai_client.state.paths import module_places
from huai_client.state.state import StateError, module_lock


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "modules").write_text("")
    with pytest.raises(StateError) as raised, module_lock(module_places(tmp_path, "m"), wait=0):
        pass
    assert raised.value.message.startswith(f"{tmp_path / 'modules'}")
    assert "move away what is" in raised.value.hint
