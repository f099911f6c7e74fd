"""Which commits stay, and that none is ever without its parent."""

import os
import shutil
import time
from itertools import islice
from pathlib import Path
from unittest import mock

import pytest

from huai_schema.git.objects import Kind
from huai_server.config.retention import FOREVER, Retention, is_worth_repack
from huai_server.store.maintain import foresee, maintain
from huai_server.store.repack import Repack
from huai_server.store.replaced import KEPT
from huai_server.store.repository import Repository
from tests.support.committing import Upstream, git

DAY = 86_400
LATER = 1_900_000_000


@pytest.mark.parametrize(
    ("serial", "time", "goes"),
    [
        (90, 1000, True),
        (90, 1001, False),  # too young
        (91, 1000, False),  # one of the newest ten
        (1, 0, True),
        (99, 0, False),
    ],
)
def test_what_goes_is_old_and_far_behind(serial: int, time: int, goes: bool) -> None:
    retention = Retention(seconds=500, commits=10)
    assert retention.drops(serial, time, newest=100, now=1500) == goes
    assert not FOREVER.drops(serial, time, newest=100, now=1500)


def test_a_history_is_over_after_so_many_commits() -> None:
    assert [Retention(1, 3).is_full(length) for length in (1, 2, 3, 4)] == [
        False,
        False,
        True,
        True,
    ]
    assert not FOREVER.is_full(10**6)


@pytest.mark.parametrize(
    ("dropped", "left", "worth"), [(1, 2, True), (1, 3, False), (64, 128, True), (64, 129, False)]
)
def test_all_is_written_again_for_enough_commits_only(dropped: int, left: int, worth: bool) -> None:
    assert is_worth_repack(dropped, left) == worth


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    upstream = Upstream(tmp_path)
    upstream.configure(keep="1d", keep_commits=3)
    return upstream


def commits(upstream: Upstream, number: int) -> list[str]:
    """Make `count` more commits; return their ids."""
    ids = []
    for _ in range(number):
        upstream.write(f"f{len(os.listdir(upstream.tree))}")
        ids.append(upstream.commit().head.commit)
    return ids


def serials(upstream: Upstream) -> list[int]:
    return [head.info.serial for head in upstream.repository.history()]


def test_histories_follow_each_other(upstream: Upstream) -> None:
    commits(upstream, 8)
    assert serials(upstream) == [8, 7, 6, 5, 4, 3, 2, 1]
    assert upstream.git("log", "--format=%s", "main").splitlines() == [
        "m 8: +1 -0 ~1",
        "m 7: +1 -0 ~1",
    ]
    refs = upstream.git("for-each-ref", "--format=%(refname)").splitlines()
    assert refs == ["refs/heads/main", "refs/huai/past/3", "refs/huai/past/6"]
    assert upstream.check().commits == 8
    upstream.prove_sound()


class Counting(Repository):
    """A repository that counts the objects that are read."""

    count = 0

    def read(self, oid: bytes, kind: Kind) -> bytes:
        self.count += 1
        return super().read(oid, kind)


def test_the_newest_commits_are_read_without_older_histories(upstream: Upstream) -> None:
    upstream.configure(keep_commits=1)
    commits(upstream, 8)
    repository = Counting(upstream.places.repository)
    assert [head.info.serial for head in islice(repository.history(), 2)] == [8, 7]
    assert repository.count == 2


def test_forever_is_one_history(upstream: Upstream) -> None:
    upstream.configure(keep="forever")
    commits(upstream, 8)
    assert len(upstream.git("log", "--format=%s", "main").splitlines()) == 8
    assert maintain(upstream.places, lambda: upstream.module.retention, now=LATER).plan.dropped == 0


def test_a_long_history_of_before_is_over_with_the_next_commit(upstream: Upstream) -> None:
    upstream.configure(keep="forever")
    commits(upstream, 8)
    upstream.configure(keep="1d")
    commits(upstream, 1)
    assert [each.info.serial for each in upstream.repository.past()] == [8]
    assert serials(upstream) == [9, 8, 7, 6, 5, 4, 3, 2, 1]


def test_old_commits_go_with_what_only_they_need(upstream: Upstream) -> None:
    commit_ids = commits(upstream, 8)
    now = upstream.repository.past()[-1].time
    plan = maintain(upstream.places, lambda: upstream.module.retention, now=now + DAY - 1).plan
    assert plan.dropped == 0
    done = maintain(upstream.places, lambda: upstream.module.retention, now=now + DAY)
    # Of the history that ends with 6, two of the three newest are not the newest.
    assert (done.plan.dropped, serials(upstream)) == (3, [8, 7, 6, 5, 4])
    assert done.after.packs.files == 1
    stored = upstream.git("cat-file", "--batch-all-objects", "--batch-check").splitlines()
    ids = {line.split()[0] for line in stored}
    assert ids >= set(commit_ids[3:])
    assert not ids & set(commit_ids[:3])
    reachable = upstream.git("rev-list", "--objects", "--all").splitlines()
    assert ids == {line.split()[0] for line in reachable}
    upstream.prove_sound()


def test_one_old_history_waits_for_another(upstream: Upstream) -> None:
    """Three commits do not go while eight stay, which would be written again."""
    now = int(time.time())
    with mock.patch.object(time, "time", return_value=now - 2.0 * DAY):
        commits(upstream, 3)
    commits(upstream, 8)
    done = maintain(upstream.places, lambda: upstream.module.retention, now=now - DAY)
    assert (done.plan.dropped, len(serials(upstream))) == (0, 11)
    later = now + 2 * DAY
    assert foresee(upstream.places, upstream.module.retention, now=later)[0].dropped == 6
    assert maintain(upstream.places, lambda: upstream.module.retention, now=later).plan.dropped == 6
    assert serials(upstream) == [11, 10, 9, 8, 7]
    upstream.prove_sound()


def test_a_run_that_was_cut_drops_the_rest_at_once(upstream: Upstream) -> None:
    """It had dropped a history before this one, so everything is written again anyway."""
    now = int(time.time())
    with mock.patch.object(time, "time", return_value=now - 2.0 * DAY):
        commits(upstream, 3)
    commits(upstream, 8)
    Repack(upstream.places.repository).note_unreachable()
    plan, _ = foresee(upstream.places, upstream.module.retention, now=now - DAY)
    assert plan.dropped == 3
    assert maintain(upstream.places, lambda: upstream.module.retention, now=now - DAY).plan == plan
    assert serials(upstream)[-1] == 4
    upstream.prove_sound()


def test_a_tree_of_long_ago_comes_back(upstream: Upstream) -> None:
    """A dropped commit is made again as if it had never existed."""
    upstream.write("f", "1", mtime=1_600_000_000)
    os.utime(upstream.tree, (1_600_000_000, 1_600_000_000))
    first = upstream.commit().head
    for number in range(8):
        upstream.write("f", "2" * number, mtime=1_700_000_000 + number)
        upstream.commit()
    done = maintain(upstream.places, lambda: upstream.module.retention, now=first.time + 2 * DAY)
    assert done.plan.dropped == 6
    upstream.write("f", "1", mtime=1_600_000_000)
    assert upstream.commit().head.tree == first.tree
    maintain(upstream.places, lambda: upstream.module.retention, now=first.time + 3 * DAY)
    upstream.prove_sound()


def test_the_branch_did_not_move(upstream: Upstream) -> None:
    """The run was killed between the ref of the finished history and the branch."""
    ids = commits(upstream, 3)
    git(upstream.places.repository, "update-ref", "refs/huai/past/3", ids[-1])
    assert serials(upstream) == [3, 2, 1]
    commits(upstream, 4)
    assert serials(upstream) == [7, 6, 5, 4, 3, 2, 1]
    upstream.prove_sound()
    maintain(upstream.places, lambda: upstream.module.retention, now=LATER)
    upstream.prove_sound()


@pytest.mark.parametrize("arguments", [[], ["--split"]])
def test_a_commit_graph_of_git_names_no_commit_that_is_gone(
    upstream: Upstream, tmp_path: Path, arguments: list[str]
) -> None:
    """`git gc` writes one, and `git fsck` fails if it names a removed commit."""
    commits(upstream, 8)
    upstream.git("commit-graph", "write", "--reachable", *arguments)
    assert upstream.check().faults == ()
    info, copy = upstream.places.repository / "objects/info", tmp_path / "info"
    shutil.copytree(info, copy)
    retention = upstream.module.retention
    assert maintain(upstream.places, lambda: retention, now=LATER).plan.dropped > 0
    upstream.prove_sound()
    shutil.copytree(copy, info, dirs_exist_ok=True)
    maintain(upstream.places, lambda: retention, now=LATER + KEPT)
    upstream.prove_sound()
    shutil.copytree(copy, info, dirs_exist_ok=True)
    (fault,) = upstream.check().faults
    assert "names removed commits" in fault


@pytest.mark.parametrize("damage", [b"", b"CGPH\1\1\0\0", b"x" * 2000])
def test_a_damaged_commit_graph_is_a_fault(upstream: Upstream, damage: bytes) -> None:
    commits(upstream, 1)
    graph = upstream.places.repository / "objects/info/commit-graph"
    graph.parent.mkdir(exist_ok=True)
    graph.write_bytes(damage)
    (fault,) = upstream.check().faults
    assert "a commit-graph" in fault
