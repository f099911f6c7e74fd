"""Refs, as git itself writes and reads them."""

import subprocess
from pathlib import Path

import pytest

from huai_client.metadata.refs import DamagedRefError, Refs
from huai_client.metadata.repository import Repository

A, B, C = "a" * 40, "b" * 40, "c" * 40


@pytest.fixture(name="path")
def repository_path(tmp_path: Path) -> Path:
    Repository(tmp_path / "repository")
    return tmp_path / "repository"


def git(path: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", path, *arguments], check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip()


def test_git_reads_what_is_written(path: Path) -> None:
    empty = git(path, "hash-object", "-w", "-t", "tree", "/dev/null")
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


def test_a_lock_is_no_ref(path: Path) -> None:
    refs = Refs(path)
    refs.set("refs/huai/fetched", A)
    (path / "refs/huai/fetched.lock").write_text(B)
    assert refs.all() == {"refs/huai/fetched": A}
    refs.set("refs/huai/fetched", B)  # what a killed run left does not stand in the way
    assert refs.all() == {"refs/huai/fetched": B}
    assert not (path / "refs/huai/fetched.lock").exists()


@pytest.mark.parametrize("text", ["", "\n", A[:39], A + "0", "ref: refs/heads/main", f"{A}\n\n"])
def test_a_ref_that_names_no_commit(path: Path, text: str) -> None:
    (path / "refs/heads/main").write_text(text)
    with pytest.raises(DamagedRefError):
        Refs(path).all()
