"""Refs, as git itself writes and reads them."""

import subprocess
from pathlib import Path

import pytest

from huai_client.metadata.repository import Repository
from huai_program.locking import LockedError
from huai_program.refs import DamagedRefError, Refs

A, B, C = "a" * 40, "b" * 40, "c" * 40


@pytest.fixture(name="path")
def repository_path(tmp_path: Path) -> Path:
    Repository(tmp_path / "repository")
    return tmp_path / "repository"


def git(path: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    done = subprocess.run(
        ["git", "-C", path, *identity, *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.strip()


def test_git_reads_what_is_written(path: Path) -> None:
    empty = _empty(path)
    Refs(path).set("refs/huai/kept/one", empty)
    assert git(path, "rev-parse", "refs/huai/kept/one") == empty
    assert git(path, "rev-parse", "--is-bare-repository") == "true"
    assert git(path, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_what_git_has_packed_is_read_and_deleted(path: Path) -> None:
    refs = Refs(path)
    (path / "packed-refs").write_text(
        f"# pack-refs with: peeled fully-peeled sorted\n{A} refs/one\n^{C}\n{B} refs/two\n"
    )
    refs.set("refs/two", C)
    assert refs.all() == {"refs/one": A, "refs/two": C}
    refs.delete("refs/two")
    assert Refs(path).all() == {"refs/one": A}
    refs.delete("refs/two")
    refs.delete("refs/one")
    assert Refs(path).all() == {}


def test_a_lock_of_a_killed_run_is_no_ref_and_in_nobodys_way(path: Path) -> None:
    refs = Refs(path)
    refs.set("refs/huai/fetched", A)
    own, lock = path / "refs/huai/fetched.huai.lock", path / "refs/huai/fetched.lock"
    own.write_text(B)
    lock.hardlink_to(own)
    assert refs.all() == {"refs/huai/fetched": A}
    refs.set("refs/huai/fetched", B)
    assert refs.all() == {"refs/huai/fetched": B}
    assert not own.exists()
    assert not lock.exists()


def test_a_run_that_was_killed_after_the_ref_had_its_name(path: Path) -> None:
    refs = Refs(path)
    refs.set("refs/huai/fetched", A)
    (path / "refs/huai/fetched.huai.lock").hardlink_to(path / "refs/huai/fetched")
    refs.remove_unfinished()
    assert refs.all() == {"refs/huai/fetched": A}
    assert [each.name for each in (path / "refs/huai").iterdir()] == ["fetched"]


def test_a_lock_of_git_is_waited_for_and_left(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huai_program.refs._WAIT_SECONDS", 0.1)
    refs = Refs(path)
    refs.set("refs/huai/fetched", A)
    lock = path / "refs/huai/fetched.lock"
    lock.write_text(B)
    with pytest.raises(LockedError, match="git is changing this ref"):
        refs.set("refs/huai/fetched", B)
    refs.remove_unfinished()
    assert refs.all() == {"refs/huai/fetched": A}
    assert lock.read_text() == B
    assert not (path / "refs/huai/fetched.huai.lock").exists()


def test_no_commit_is_lost_while_git_packs_refs(path: Path) -> None:
    """git deletes the file of a ref that it has packed, unless that was changed meanwhile."""
    commits = [git(path, *f"commit-tree -m {n} {_empty(path)}".split()) for n in range(8)]
    refs = Refs(path)
    for commit in commits * 4:
        with subprocess.Popen(["git", "-C", path, "pack-refs", "--all"]) as packing:
            refs.set("refs/heads/main", commit)
            assert refs.get("refs/heads/main") == commit
            packing.wait(60)  # it gives up if the ref is locked
        assert git(path, "rev-parse", "refs/heads/main") == commit
        assert refs.get("refs/heads/main") == commit


def _empty(path: Path) -> str:
    return git(path, "hash-object", "-w", "-t", "tree", "/dev/null")


@pytest.mark.parametrize("text", ["", "\n", A[:39], A + "0", "ref: refs/heads/main", f"{A}\n\n"])
def test_a_ref_that_names_no_commit(path: Path, text: str) -> None:
    (path / "refs/heads/main").write_text(text)
    with pytest.raises(DamagedRefError):
        Refs(path).all()
