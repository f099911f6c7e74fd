"""A commit that is killed before any of its system calls, or refused one, harms nothing."""

import errno
import shutil
from pathlib import Path

import pytest

from huai_schema.errors import HuaiError
from tests.fault.sampling import LONG, some_of
from tests.support.committing import Upstream, fsck
from tests.support.system_calls import CHANGING, KILL, Call, at, never, supervise

FILES = 30
WRITING = (*CHANGING, "open")
SPARE = 1
"""By so many calls two equal runs may differ: libgit2 touches a pack that holds what is to be
written, but not twice within two seconds."""


@pytest.fixture
def upstream(short_path: Path) -> Upstream:
    found = Upstream(short_path)
    for number in range(FILES):
        found.write(f"d{number % 3}/f{number}", "x" * number)
    return found


class Cuts:
    """Brings an upstream back to where it was, as often as needed."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self._saved = upstream.root.with_name("saved")
        self.before = upstream.head.commit if upstream.root.exists() else None
        if upstream.root.exists():
            shutil.copytree(upstream.root, self._saved)
        assert upstream.commit().changed
        self.tree = upstream.entries_id

    def reset(self) -> None:
        shutil.rmtree(self.upstream.root, ignore_errors=True)
        if self.before is not None:
            shutil.copytree(self._saved, self.upstream.root)

    def head(self) -> str | None:
        """The newest commit, as git sees it."""
        if not self.upstream.places.repository.exists():
            return None
        head = self.upstream.repository.head()
        return head.commit if head else None

    def prove_harmless(self, context: object, *, partly: bool = False) -> None:
        """Old or new, sound, and finished by the next run with nothing left behind.

        `partly`: the run said that some of the tree could not be read.
        """
        upstream = self.upstream
        found = self.head()
        if found is not None:
            new = found != self.before
            assert partly or not new or upstream.entries_id == self.tree, context
            assert upstream.check().faults == (), context
            fsck(upstream.places.repository)
        result = upstream.commit()
        assert partly or result.changed == (found == self.before), context
        assert (upstream.entries_id, result.problems) == (self.tree, ()), context
        left = [path.name for path in upstream.root.rglob("tmp_*")]
        packs = list(upstream.repository.pack_folder.iterdir())
        assert not left, (context, left)
        assert {path.suffix for path in packs} == {".pack", ".idx"}, context
        assert len(packs) % 2 == 0, context


def run(upstream: Upstream) -> str:
    """Commit; what came of it, in a word."""
    try:
        result = upstream.commit()
    except HuaiError as error:
        return f"{int(error.exit_code)} {error.message}"
    if result.problems:
        return f"{int(result.exit_code)} {result.problems}"
    return "changed" if result.changed else "unchanged"


@pytest.fixture(params=["first", "second"])
def cuts(request: pytest.FixtureRequest, upstream: Upstream) -> Cuts:
    if request.param == "second":
        upstream.commit()
        upstream.write("d1/new", "new")
        (upstream.tree / "d2").rename(upstream.tree / "moved")
    return_to = Cuts(upstream)
    return_to.reset()
    return return_to


def steps_of(cuts: Cuts, names: tuple[str, ...]) -> list[Call]:
    outcome = supervise(names, lambda: run(cuts.upstream), never)
    assert outcome.result == "changed"
    assert len(outcome.calls) > 30, outcome.calls
    return outcome.calls


@pytest.mark.slow
@pytest.mark.timeout(LONG)
def test_a_kill_before_every_system_call(cuts: Cuts) -> None:
    moved = 0
    steps = steps_of(cuts, CHANGING)
    for call in some_of(steps):
        cuts.reset()
        outcome = supervise(CHANGING, lambda: run(cuts.upstream), at(call.step, KILL))
        if not outcome.killed:
            assert call.step > len(steps) - SPARE, (call, outcome.result)
            assert outcome.result == "changed", call
        moved += cuts.head() not in (None, cuts.before)
        cuts.prove_harmless(call)
    # The branch moves near the end, and not before.
    assert moved < 10


@pytest.mark.slow
def test_a_kill_amid_a_large_directory(short_path: Path) -> None:
    """Of a directory that goes on in parts the pack holds some already."""
    upstream = Upstream(short_path)
    upstream.configure(digest="off")
    for number in range(12_000):
        upstream.write(f"large/{number:05}-{'x' * 200}")
    cuts = Cuts(upstream)
    cuts.reset()
    outcome = supervise(("write",), lambda: run(upstream), never)
    assert outcome.result == "changed"
    grown = 0
    for call in some_of(outcome.calls):
        cuts.reset()
        cut = supervise(("write",), lambda: run(upstream), at(call.step, KILL))
        assert cut.killed, (call, cut.result)
        left = upstream.places.repository.glob("objects/pack/tmp_*")
        grown += any(path.stat().st_size > 10_000 for path in left)
        cuts.prove_harmless(call)
    assert grown >= 2


@pytest.mark.slow
@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_every_system_call_may_fail(cuts: Cuts, number: int) -> None:
    """Each single one: a clear error, or no difference at all."""
    failed = 0
    for call in some_of(steps_of(cuts, WRITING), number):
        cuts.reset()
        outcome = supervise(WRITING, lambda: run(cuts.upstream), at(call.step, number))
        assert isinstance(outcome.result, str)
        code = outcome.result.partition(" ")[0]
        assert code in ("changed", "11", "41", "50"), (call, outcome)
        failed += code != "changed"
        cuts.prove_harmless((call, outcome.result), partly=code == "41")
    assert failed > 10


def test_a_disk_that_fills_up_is_told_as_such(cuts: Cuts) -> None:
    def full(call: Call) -> int | None:
        return errno.ENOSPC if call.name in ("write", "mkdir") else None

    outcome = supervise(CHANGING, lambda: run(cuts.upstream), full)
    assert isinstance(outcome.result, str)
    assert outcome.result.startswith("11 ")
    assert "No space left on device" in outcome.result or "full" in outcome.result
    cuts.prove_harmless(outcome.result)
