"""After any kill a list is as good as a whole scan: what it commits has the same tree."""

import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from huai_schema.errors import HuaiError
from huai_server.commit.later import digest_tree
from huai_server.commit.read_limits import ReadLimits
from tests.fault.sampling import LONG, some_of
from tests.support.committing import NAME, Upstream
from tests.support.system_calls import CHANGING, KILL, at, never, supervise

CHANGED = ("d0/f0", "d1/l0", "d0/new", "d2/new", "d1/f1", "d0/f3", "moved/**", "renamed")
"""What a truthful list says of `change`: rsync names an old name beside each new one."""
LINES = 300
WIDTH = 200


def link(upstream: Upstream, old: str, new: str) -> None:
    os.link(upstream.tree / old, upstream.tree / new)


@pytest.fixture
def upstream(short_path: Path) -> Upstream:
    """Groups of hardlinks across directories, and files; the first commit is made."""
    found = Upstream(short_path)
    for number in range(9):
        found.write(f"d{number % 3}/f{number}", "x" * number)
    for number in range(4):
        found.write(f"renamed/r{number}", "r" * number)
    for old, new in (("d0/f0", "d1/l0"), ("d0/f0", "d2/l0"), ("d1/f1", "d2/l1")):
        link(found, old, new)
    return found


def change(upstream: Upstream) -> None:
    """A group gets another leader, a new one comes, one changes; a directory is renamed."""
    (upstream.tree / "d0/f0").unlink()
    link(upstream, "d0/f3", "d0/new")
    link(upstream, "d0/f3", "d2/new")
    upstream.write("d1/f1", "changed")
    (upstream.tree / "renamed").rename(upstream.tree / "moved")


def commit_listed(upstream: Upstream) -> bool:
    return upstream.commit_listed(*CHANGED).changed


def commit_whole(upstream: Upstream) -> bool:
    return upstream.commit().changed


def digest(upstream: Upstream) -> bool:
    return digest_tree(NAME, upstream.module, upstream.places, ReadLimits()).changed


def prove_listed(upstream: Upstream, context: object, *paths: str) -> str:
    """What these paths give is what a whole scan sees; why that was made, if it was."""
    result = upstream.commit_listed(*paths)
    assert result.problems == (), context
    assert upstream.audit().differing == 0, context
    assert result.listed is not None
    return result.listed.scanned


@pytest.mark.slow
@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("run", [commit_listed, commit_whole, digest])
def test_a_list_after_a_kill(upstream: Upstream, run: Callable[[Upstream], bool]) -> None:
    if run is digest:
        upstream.configure(digest="later")
    upstream.commit()
    change(upstream)
    saved = upstream.root.with_name("saved")
    shutil.copytree(upstream.root, saved)
    outcome = supervise(CHANGING, lambda: run(upstream), never)
    assert outcome.result is True
    reasons = set()
    for call in some_of(outcome.calls):
        shutil.rmtree(upstream.root)
        shutil.copytree(saved, upstream.root)
        supervise(CHANGING, lambda: run(upstream), at(call.step, KILL))
        reasons.add(prove_listed(upstream, call, *CHANGED))
        # The record of groups is whole: a leader changes, and the list names nobody else.
        upstream.write("d1/l0", f"changed {call.step}")
        assert prove_listed(upstream, call, "d1/l0") == "", call
        digest(upstream)  # where they come later, a whole scan commits those that are known
        whole = upstream.commit()
        assert (whole.changed, whole.problems) == (False, ()), call
        upstream.prove_sound()
        assert not [*upstream.root.rglob("tmp_*")], call
    assert reasons == {"", "no record says how the last commit was made"}


def test_a_list_after_a_record_of_groups_that_was_cut_in_a_line(upstream: Upstream) -> None:
    """As a full disk leaves it: `RLIMIT_FSIZE` lets a write end in the middle, and fails the next.

    What a later commit appended became part of that line: a name of its first pair was forgotten.
    """

    def name(number: int) -> str:
        return f"d{number % 3}/{number:03}{'x' * WIDTH}"

    for number in range(0, LINES, 2):
        upstream.write(name(number))
        link(upstream, name(number), name(number + 1))
    upstream.commit()
    record = upstream.places.hardlinks
    size = record.stat().st_size
    new = [name(number) for number in range(LINES, 2 * LINES)]
    for one, other in zip(new[::2], new[1::2], strict=True):
        upstream.write(one)
        link(upstream, one, other)

    def commit() -> str:
        limit = size + WIDTH
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            upstream.commit_listed(*new)
        except HuaiError as error:
            return error.message
        return ""

    assert "File too large" in str(supervise(("write",), commit, never).result)
    assert not record.read_bytes().endswith(b"\n")
    link(upstream, "d0/f6", "d0/first")
    for paths in (["d0/first", "d0/f6"], new):
        assert upstream.commit_listed(*paths).changed
    upstream.write("d0/f6", "the leader changes, and who follows it")
    assert prove_listed(upstream, "changed", "d0/f6") == ""
