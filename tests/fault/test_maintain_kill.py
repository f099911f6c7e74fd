"""A `maintain` that is killed before any of its system calls, or refused one, loses nothing."""

import errno
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from huai_schema.errors import HuaiError
from huai_server.store.maintain import foresee, maintain
from tests.fault.sampling import CUTS
from tests.support.committing import Upstream, fsck
from tests.support.system_calls import CHANGING, Call, Cut, process_of, supervise

WRITING = (*CHANGING, "open")
COMMITS = 6
CUTS_MAX = min(30, 2 * CUTS)
"""Of its own calls, git's are not counted; there are about sixty: each fourth or second one."""
NOW = 1_900_000_000
LATER = NOW + 7200
"""What was replaced at NOW may go."""


@pytest.fixture(params=["merge", "drop"])
def upstream(request: pytest.FixtureRequest, short_path: Path) -> Upstream:
    """Some commits that wait for `maintain`, beside packs that it has replaced before."""
    found = Upstream(short_path)
    if request.param == "drop":
        found.configure(keep="0", keep_commits=2)
    for number in range(60):
        found.write(f"d{number % 3}/f{number}", "x" * number)
    found.commit()
    for number in range(COMMITS):
        found.write(f"d1/new{number}", "new")
        found.commit()
        if number == COMMITS // 2:
            maintain(found.places, found.module.retention, now=NOW)
    return found


class Cuts:
    """Brings an upstream back to where it was, as often as needed."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.commit = upstream.head.commit
        self._before = upstream.check().commits
        dropped = foresee(upstream.places, upstream.module.retention, now=LATER)[0].dropped
        self._after = self._before - dropped
        self._saved = upstream.root.with_name("saved")
        shutil.copytree(upstream.root, self._saved)

    def reset(self) -> None:
        shutil.rmtree(self.upstream.root)
        shutil.copytree(self._saved, self.upstream.root)

    def prove_harmless(self, context: object) -> None:
        """Sound, whole, and finished by the next run with nothing left behind."""
        upstream = self.upstream
        assert upstream.head.commit == self.commit, context
        fsck(upstream.places.repository)
        assert upstream.check().commits in (self._before, self._after), context
        assert upstream.check().faults == (), context
        done = maintain(upstream.places, upstream.module.retention, now=LATER + 3600)
        assert done.after.unfinished == (0, 0), context
        # All but the one that is just what is made of them.
        assert done.plan.merged - done.after.replaced.files in (0, 1), context
        plan, _ = foresee(upstream.places, upstream.module.retention, now=LATER)
        assert plan == (0, 0, 0), context
        fsck(upstream.places.repository)
        assert upstream.check().commits == self._after, context


def run(upstream: Upstream, now: float = LATER) -> str:
    """What came of it, in a word."""
    try:
        maintain(upstream.places, upstream.module.retention, now=now)
    except HuaiError as error:
        return f"{int(error.exit_code)} {error.message}"
    return "done"


@pytest.fixture
def cuts(upstream: Upstream) -> Cuts:
    return Cuts(upstream)


def points(cuts: Cuts, names: Sequence[str]) -> Sequence[int]:
    """Numbers of its own calls, as many as cuts are wanted, evenly, and the last."""
    counting = Cut(0)
    outcome = supervise(names, lambda: run(cuts.upstream), counting)
    assert outcome.result == "done"
    assert counting.passed > 40, outcome.calls
    every = -(-counting.passed // CUTS_MAX)
    return [*range(1, counting.passed, every), counting.passed]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_kill_before_its_system_calls(cuts: Cuts) -> None:
    killed = 0
    for point in points(cuts, CHANGING):
        cuts.reset()
        outcome = supervise(CHANGING, lambda: run(cuts.upstream), Cut(point))
        killed += outcome.killed
        cuts.prove_harmless((point, outcome.calls[-1]))
    assert killed > CUTS_MAX / 2


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_its_system_calls_may_fail(cuts: Cuts, number: int) -> None:
    """Each single one: a clear error, or no difference at all."""
    failed = 0
    for point in points(cuts, WRITING):
        cuts.reset()
        outcome = supervise(WRITING, lambda: run(cuts.upstream), Cut(point, number))
        assert isinstance(outcome.result, str)
        code = outcome.result.partition(" ")[0]
        assert code in ("done", "11", "50"), (point, outcome.calls[-1], outcome.result)
        failed += code != "done"
        cuts.prove_harmless((point, outcome.result))
    assert failed > CUTS_MAX / 3


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_git_may_be_refused_what_it_writes(cuts: Cuts) -> None:
    """Its messages are all that tells what happened to it."""
    own: set[int] = set()

    def full(call: Call) -> int | None:
        process = process_of(call.thread)
        own.update([] if own else [process])
        to_file = call.name == "write" and call.arguments[0] > 2
        return errno.ENOSPC if to_file and process not in own else None

    outcome = supervise(CHANGING, lambda: run(cuts.upstream), full)
    assert isinstance(outcome.result, str)
    assert outcome.result.startswith("11 "), outcome.result
    cuts.prove_harmless(outcome.result)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_disk_that_has_no_room(upstream: Upstream, disk: Path) -> None:
    """It ends with 11, and with room it is finished."""
    full = Upstream(disk, upstream.tree)
    full.module, full.root = upstream.module, disk / "state"
    shutil.copytree(upstream.root, full.root)
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 10))
    assert run(full, NOW).startswith("11 ")
    assert full.check().faults == ()
    assert full.check().commits == upstream.check().commits
    filler.unlink()
    assert run(full) == "done"
    Cuts(full).prove_harmless("with room")
