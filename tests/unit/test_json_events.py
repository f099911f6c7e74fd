"""The comparison of `--json` with its page finds each kind of fault."""

from typing import Any

import pytest

from tests.support.json_events import PROGRAMS, events, faults

PROGRAM = "huai-client"
RIGHT: dict[str, dict[str, Any]] = {
    "part": {
        "module": "m",
        "path": ".",
        "parts": 1,
        "damaged": 0,
        "metadata": {"never": 0, "changed": 0, "oldest": 5, "newest": None},
        "content": {"never": 0, "changed": 0, "oldest": 5, "newest": 6},
    },
    "all-ended": {"modules": 2, "failed": ["a"], "code": 1, "name": None, "milliseconds": 5},
    "check": {"module": None, "check": "rsync", "result": "ok", "message": "", "fix": ""},
}


def find_faults(kind: str, **changes: object) -> list[str]:
    event = {"v": 1, "type": kind, **RIGHT[kind], **changes}
    return list(faults(PROGRAM, {name: value for name, value in event.items() if value != "gone"}))


@pytest.mark.parametrize("kind", RIGHT)
def test_what_is_right_has_no_fault(kind: str) -> None:
    assert find_faults(kind) == []


@pytest.mark.parametrize(
    ("kind", "changes", "fault"),
    [
        ("part", {"v": 2}, "part is not described, or not of version 1"),
        ("part", {"type": "prat"}, "prat is not described, or not of version 1"),
        ("part", {"more": 1}, "part.more is not described"),
        ("part", {"parts": "gone"}, "part.parts is missing"),
        ("part", {"parts": True}, "part.parts is of another type"),
        ("part", {"parts": 1.5}, "part.parts is of another type"),
        ("part", {"parts": None}, "part.parts is of another type"),
        ("part", {"path": ""}, "part.path is of another type"),
        ("part", {"metadata": {}}, "part.metadata.never is missing"),
        ("part", {"metadata": []}, "part.metadata is of another type"),
        ("all-ended", {"failed": "a"}, "all-ended.failed is of another type"),
        ("all-ended", {"failed": [1]}, "all-ended.failed[] is of another type"),
        ("check", {"result": "good"}, "check.result is of another type"),
    ],
)
def test_a_fault_is_found(kind: str, changes: dict[str, object], fault: str) -> None:
    assert fault in find_faults(kind, **changes)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_has_events(program: str) -> None:
    assert {"error", "added", "removed", "module"} <= set(events(program))
