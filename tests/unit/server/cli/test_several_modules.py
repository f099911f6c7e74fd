"""A command for several modules continues after a failure and ends with the worst exit code."""

from itertools import permutations

import pytest

from huai_program.locking import LockedError
from huai_schema.errors import ExitCode
from huai_server.cli.console import Console
from huai_server.cli.options import run_all


@pytest.mark.parametrize("codes", list(permutations((0, ExitCode.LOCKED, ExitCode.UNSOUND))))
def test_the_worst_code_counts_in_any_order(
    codes: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    by_name = dict(zip("abc", codes, strict=True))

    def one(name: str) -> int:
        if by_name[name] == ExitCode.LOCKED:
            raise LockedError("another run holds the lock")
        return by_name[name]

    console = Console(quiet=True, as_json=False)
    assert run_all(one, tuple(by_name), console) == ExitCode.UNSOUND
    assert "another run holds the lock" in capsys.readouterr().err


def test_an_incomplete_commit_counts_least(subtests: pytest.Subtests) -> None:
    for codes in list(permutations((0, ExitCode.INCOMPLETE, ExitCode.LOCKED))):
        with subtests.test(codes=codes):
            by_name = dict(zip("abc", codes, strict=True))
            console = Console(quiet=True, as_json=False)
            assert run_all(by_name.__getitem__, tuple(by_name), console) == ExitCode.LOCKED
