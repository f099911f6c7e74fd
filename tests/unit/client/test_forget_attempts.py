"""Attempts are kept as long as the commit that was applied is not here."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from msgspec.structs import replace

from huai_client.state.state import State
from huai_client.sync.record import ModuleRecord


class _Empty:
    """A repository without commits; to ask for one is an error."""

    def has(self, _commit: str) -> bool:
        return False


def test_attempts_stay_while_the_applied_commit_is_gone() -> None:
    attempted = tuple(f"{number:040x}" for number in range(5))
    state = replace(State(), applied="a" * 40, attempted=attempted)
    mirror = cast("Any", SimpleNamespace(paths=SimpleNamespace(state=Path("/nonexistent"))))
    record = ModuleRecord(mirror, cast("Any", _Empty()), state)
    record.forget_attempts(cast("Any", SimpleNamespace(is_part=False)), cast("Any", None), set())
    assert record.state == state
