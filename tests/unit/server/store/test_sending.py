"""The packs that lead from commit to commit, as git reads them."""

import hashlib
import subprocess
from pathlib import Path
from random import Random

import pytest

from huai_schema.errors import FormatError
from huai_server.store.repository import Head
from tests.support.committing import ENVIRONMENT, Upstream, git


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    upstream = Upstream(tmp_path)
    for number in range(1500):
        upstream.write(f"d{number % 5}/f{number}", str(number), mtime=1_600_000_000 + number)
    upstream.commit()
    return upstream


def index(repository: Path, pack: bytes) -> None:
    """Let git complete a thin pack with objects in `repository`, and read all of it."""
    command = ["git", "index-pack", "--fix-thin", "--stdin"]
    subprocess.run(
        command, cwd=repository, input=pack, env=ENVIRONMENT, capture_output=True, check=True
    )


def step(upstream: Upstream, old: Head, new: Head) -> bytes:
    """Return the pack from one commit to another."""
    repository, pieces = upstream.repository, list[bytes]()
    since = bytes.fromhex(old.tree)
    repository.packs.send(*repository.content(new), pieces.append, since=since)
    return b"".join(pieces)


def test_a_step_holds_what_a_changed_file_changes(upstream: Upstream, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(upstream.places.repository), "copy.git")
    for number in range(4):
        old = upstream.head
        upstream.write(f"d2/f{number}", "other")
        upstream.write(f"new{number}/f", "new")
        pack = step(upstream, old, upstream.commit().head)
        index(tmp_path / "copy.git", pack)
        # All but the objects of a changed file exist already.
        assert len(pack) < 3000
        git(tmp_path / "copy.git", "rev-list", "--objects", "--quiet", upstream.head.commit)


@pytest.mark.parametrize("repack", [False, True])
def test_a_moved_directory_is_not_sent_again(upstream: Upstream, repack: bool) -> None:
    """Nor if one pack has both commits."""
    old = upstream.head
    (upstream.tree / "d3").rename(upstream.tree / "moved")
    upstream.commit()
    if repack:
        upstream.git("repack", "-adfq")
    assert len(step(upstream, old, upstream.head)) < 2500


def test_what_is_as_before_makes_an_empty_step(upstream: Upstream) -> None:
    """Return the commit alone."""
    assert step(upstream, upstream.head, upstream.head)[8:12] == bytes([0, 0, 0, 1])


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
        index(copy, step(upstream, old, new))
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
    pack = b"".join(pieces)
    index(tmp_path / "copy.git", pack)
    assert pack[-20:] == hashlib.sha1(pack[:-20], usedforsecurity=False).digest()
    for name in (head.commit, f"{head.commit}^{{tree}}"):
        listed = [
            git(path, "ls-tree", "-rt", name)
            for path in (upstream.places.repository, tmp_path / "copy.git")
        ]
        assert listed[0] == listed[1]


def test_what_is_in_no_pack(upstream: Upstream) -> None:
    commit, _ = upstream.repository.content(upstream.head)
    with pytest.raises(FormatError, match="in no pack"):
        upstream.repository.packs.send(commit, b"x" * 20, bytes)


def test_an_exception_of_the_receiver_comes_through(upstream: Upstream) -> None:
    def fail(_data: bytes) -> None:
        raise OSError(28, "full")

    with pytest.raises(OSError, match="full"):
        upstream.repository.packs.send(*upstream.repository.content(upstream.head), fail)


@pytest.mark.parametrize("seed", range(3))
def test_several_commits_in_one_pack(upstream: Upstream, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    heads = [upstream.head]
    for _ in range(4):
        change_at_random(upstream, random)
        heads.append(upstream.commit().head)
    pieces: list[bytes] = []
    contents = [upstream.repository.content(head) for head in heads]
    upstream.repository.packs.pack(contents, pieces.append)
    git(tmp_path, "init", "--quiet", "--bare", "copy.git")
    copy = tmp_path / "copy.git"
    git(copy, "index-pack", "--strict", "--stdin", stdin=b"".join(pieces))
    for head in heads:
        assert git(copy, "ls-tree", "-rt", head.commit) == upstream.git(
            "ls-tree", "-rt", head.commit
        )
        git(copy, "rev-list", "--objects", f"{head.commit}^{{tree}}")
