"""A sync in which several things went wrong ends with the worst of their exit codes."""

from dataclasses import replace
from itertools import pairwise

import pytest

from huai_client.sync.result import SyncResult
from huai_client.transfer.fetch import Outcome, RefusedFile
from huai_schema.entries import File
from huai_schema.errors import ExitCode
from huai_schema.paths import RelPath

A_FILE = File(RelPath(b"a"), 0, 0)
NOTHING = Outcome((), [], [], 0)
FAILED = (
    (ExitCode.VANISHED, replace(NOTHING, missing=[A_FILE])),
    (ExitCode.TIMEOUT, replace(NOTHING, late=[A_FILE])),
    (ExitCode.PARTIAL, replace(NOTHING, refused=[RefusedFile(A_FILE, "no")])),
    (ExitCode.MISMATCH, replace(NOTHING, mismatched=[A_FILE])),
)
"""The problems of a run, from the mildest to the worst."""


def code_of(outcome: Outcome) -> ExitCode:
    return SyncResult("", 1, 0, 0, outcome=outcome).exit_code


@pytest.mark.parametrize(("milder", "worse"), list(pairwise(FAILED)))
def test_the_worst_code_counts(
    milder: tuple[ExitCode, Outcome], worse: tuple[ExitCode, Outcome]
) -> None:
    assert code_of(milder[1]) == milder[0]
    assert code_of(milder[1] + worse[1]) == worse[0]


def test_a_run_without_a_failure_ends_with_0() -> None:
    assert code_of(NOTHING) == SyncResult("", 1, 0, 0).exit_code == ExitCode.OK
