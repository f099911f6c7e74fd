"""The packs that lead from commit to commit: as git reads them, named and kept."""

import hashlib
import subprocess
from pathlib import Path
from random import Random

import pytest

from huai_program.packs import TEMPORARY
from huai_schema.errors import FormatError
from huai_server.store.steps import list_steps, step_path
from tests.support.committing import ENVIRONMENT, Upstream, git


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    made = Upstream(tmp_path)
    for number in range(1500):
        made.write(f"d{number % 5}/f{number}", str(number), mtime=1_600_000_000 + number)
    made.commit()
    return made


def index(repository: Path, pack: bytes) -> None:
    """Git completes a thin pack with what is in `repository`, and reads all of it."""
    command = ["git", "index-pack", "--fix-thin", "--stdin"]
    subprocess.run(
        command, cwd=repository, input=pack, env=ENVIRONMENT, capture_output=True, check=True
    )


def test_each_commit_leaves_its_step(upstream: Upstream, tmp_path: Path) -> None:
    repository = upstream.places.repository
    assert list_steps(repository) == []
    commits = [upstream.head.commit]
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), "copy.git")
    for number in range(4):
        upstream.write(f"d2/f{number}", "other")
        upstream.write(f"new{number}/f", "new")
        commits.append(upstream.commit().head.commit)
        *_, before, old, new = ("", *commits)
        kept = [step_path(repository, old, new)]
        kept += [step_path(repository, before, old)] if before else []
        assert sorted(list_steps(repository)) == sorted(kept)
        index(tmp_path / "copy.git", kept[0].read_bytes())
        # Everything but what a changed file changes is there already.
        assert kept[0].stat().st_size < 3000
        git(tmp_path / "copy.git", "rev-list", "--objects", "--quiet", new)


def test_a_commit_without_changes_leaves_them(upstream: Upstream) -> None:
    upstream.write("new")
    upstream.commit()
    before = list_steps(upstream.places.repository)
    assert not upstream.commit().changed
    assert list_steps(upstream.places.repository) == before


def test_a_moved_directory_is_not_sent_again(upstream: Upstream) -> None:
    (upstream.tree / "d3").rename(upstream.tree / "moved")
    upstream.commit()
    (step,) = list_steps(upstream.places.repository)
    assert step.stat().st_size < 2500


def test_what_a_killed_run_left_goes(upstream: Upstream) -> None:
    upstream.write("new")
    upstream.commit()
    (step,) = list_steps(upstream.places.repository)
    left = step.with_name(f"{TEMPORARY}x")
    left.touch()
    upstream.commit()
    assert not left.exists()
    assert step.exists()


def change_at_random(upstream: Upstream, random: Random) -> None:
    """Write, remove, move and bring back, so that objects come, go and come again."""
    for _ in range(random.randrange(1, 6)):
        number = random.randrange(1500)
        path = upstream.tree / f"d{number % 5}/f{number}"
        if path.exists() and random.random() < 0.3:
            path.unlink()
        elif path.parent.exists():
            upstream.write(str(path.relative_to(upstream.tree)), str(number), 1_600_000_000)
    moved = random.choice(sorted(upstream.tree.iterdir()))
    name = moved.name.removesuffix("-away")
    moved.rename(upstream.tree / (name if name != moved.name else f"{name}-away"))


@pytest.mark.parametrize("seed", range(3))
def test_what_leads_from_any_commit_to_the_newest(
    upstream: Upstream, tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    heads = [upstream.head]
    for _ in range(6):
        change_at_random(upstream, random)
        heads.append(upstream.commit().head)
    new, repository = heads[-1], upstream.repository
    for number, old in enumerate(heads[:-1]):
        copy = tmp_path / f"{number}.git"
        git(tmp_path, "init", "--quiet", "--bare", copy.name)
        git(copy, "fetch", "--quiet", "--depth=1", f"file://{repository.path}", old.commit)
        pieces: list[bytes] = []
        since = repository.tree_of(old.commit), b""
        repository.packs.send(*repository.content(new), pieces.append, since=since)
        index(copy, b"".join(pieces))
        with (copy / "shallow").open("a") as shallow:
            shallow.write(f"{new.commit}\n")
        git(copy, "update-ref", "refs/heads/main", new.commit)
        git(copy, "fsck", "--full", "--strict", "--no-dangling")
        assert git(copy, "ls-tree", "-rt", "main") == upstream.git("ls-tree", "-rt", "main")


@pytest.mark.parametrize("repack", [False, True])
def test_all_of_a_commit(upstream: Upstream, tmp_path: Path, repack: bool) -> None:
    upstream.write("d1/f1", "other")
    head = upstream.commit().head
    if repack:
        upstream.git("repack", "-adfq", "--depth=20", "--window=50")
    git(tmp_path, "init", "--quiet", "--bare", "copy.git")
    pieces: list[bytes] = []
    upstream.repository.packs.send(*upstream.repository.content(head), pieces.append)
    whole = b"".join(pieces)
    index(tmp_path / "copy.git", whole)
    assert whole[-20:] == hashlib.sha1(whole[:-20], usedforsecurity=False).digest()
    for name in (head.commit, f"{head.commit}^{{tree}}"):
        listed = [
            git(path, "ls-tree", "-rt", name)
            for path in (upstream.places.repository, tmp_path / "copy.git")
        ]
        assert listed[0] == listed[1]


def test_what_is_in_no_pack(upstream: Upstream) -> None:
    wanted = upstream.repository.content(upstream.head)
    with pytest.raises(FormatError, match="in no pack"):
        upstream.repository.packs.send(wanted.commit, b"x" * 20, bytes)


def test_an_exception_of_the_receiver_comes_through(upstream: Upstream) -> None:
    def put(_data: bytes) -> None:
        raise OSError(28, "full")

    with pytest.raises(OSError, match="full"):
        upstream.repository.packs.send(*upstream.repository.content(upstream.head), put)
