"""The execution of checks, and their totals."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_client.inspect.doctor.checks import CONFIG, MACHINE, MODULE
from huai_client.inspect.doctor.finding import (
    Check,
    Finding,
    FindingTotals,
    Result,
    fail,
    ok,
    run_checks,
    skipped,
    warn,
)
from huai_program.locking import LockedError
from huai_schema.errors import ExitCode, FormatError

PAGE = (Path(__file__).parents[5] / "docs/DOWNSTREAM.md").read_text(encoding="utf-8")


def examined(*findings: Finding) -> Check[None]:
    return Check("check", "a check", lambda _: findings)


def raising(error: Exception) -> Check[None]:
    def run(_: None) -> Iterator[Finding]:
        yield ok("so far")
        raise error

    return Check("raises", "goes wrong", run)


@pytest.mark.parametrize(
    ("error", "result", "code"),
    [
        (FormatError("odd"), Result.FAIL, ExitCode.FORMAT),
        (PermissionError(13, "Permission denied", "/x"), Result.FAIL, ExitCode.FILE_IO),
        (LockedError("held"), Result.SKIPPED, ExitCode.OK),
    ],
)
def test_what_goes_wrong_in_a_check_is_what_it_found(
    error: Exception, result: Result, code: ExitCode
) -> None:
    first, second = run_checks([raising(error)], None)
    assert first.finding == ok("so far")
    assert (second.check, second.finding.result, second.finding.code) == ("raises", result, code)
    assert result is not Result.FAIL or second.finding.fix


def test_an_error_that_nobody_expected_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        list(run_checks([raising(ZeroDivisionError())], None))


def test_a_check_that_makes_no_sense_is_skipped_and_so_is_what_needs_it() -> None:
    broken = examined(ok("partly"), fail("no", "repair it", ExitCode.CONFIG))
    second = Check[None]("second", "", lambda _: [ok("never")], needs=("check",))
    third = Check[None]("third", "", lambda _: [ok("never")], needs=("second",))
    results = [each.finding.result for each in run_checks([broken, second, third], None)]
    assert results == [Result.OK, Result.FAIL, Result.SKIPPED, Result.SKIPPED]


def test_the_exit_code_is_that_of_the_first_failure() -> None:
    assert FindingTotals().exit_code == ExitCode.OK
    verdict = FindingTotals()
    for finding in (
        warn("w", "x"),
        skipped("s"),
        fail("one", "x", ExitCode.NETWORK),
        fail("two", "x", ExitCode.CONFIG),
    ):
        verdict.add(finding)
    assert verdict.exit_code == ExitCode.NETWORK
    assert verdict.values() == {"ok": 0, "warn": 1, "fail": 2, "skipped": 1}
    assert str(verdict) == "1 warn, 2 fail, 1 skipped"


def test_checks_have_their_own_ids_and_need_what_comes_before_them() -> None:
    alone = {each.id: each.needs for each in MACHINE}
    each_module = {each.id: each.needs for each in MODULE}
    together = {**alone, **{each.id: each.needs for each in CONFIG}, **each_module}
    assert len(together) == len(MACHINE) + len(CONFIG) + len(MODULE)
    for checks in (alone, each_module):
        before: set[str] = set()
        for name, needs in checks.items():
            assert {*needs} <= before
            before.add(name)


def test_each_check_is_described() -> None:
    ids = {each.id for each in MACHINE} | {each.id for each in CONFIG}
    ids |= {each.id for each in MODULE}
    table = PAGE.split("| check |")[1]
    assert [name for name in sorted(ids) if f"`{name}`" not in table] == []
