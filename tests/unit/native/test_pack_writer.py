"""Packs as git itself sees them."""

import errno
import os
from hashlib import sha1
from pathlib import Path

import pytest

from huai_native._native import PackWriter
from huai_program.packs import TEMPORARY, remove_unfinished
from huai_schema.errors import FormatError
from tests.support.committing import fsck, git
from tests.support.git_objects import object_id
from tests.support.system_calls import CHANGING, KILL, Call, at, from_on, never, supervise

SIZES = [0, 1, 15, 16, 17, 2047, 2048, 2049, 262_143, 262_144, 5 << 20]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "r.git"
    path.mkdir()
    git(path, "init", "--quiet", "--bare")
    return path


@pytest.fixture
def packs(repository: Path) -> Path:
    return repository / "objects/pack"


def content(size: int) -> bytes:
    return (sha1(b"%d" % size, usedforsecurity=False).digest() * (size // 20 + 1))[:size]


def open_writer(packs: Path, threads: int = 2) -> PackWriter:
    return PackWriter(os.fsencode(packs), os.fsencode(TEMPORARY + "x"), threads=threads)


def finish(packs: Path, writer: PackWriter) -> Path:
    name = writer.finish()
    assert name is not None
    return packs / f"{name.decode()}.pack"


def finished(packs: Path, *blobs: bytes) -> Path:
    writer = open_writer(packs)
    for blob in blobs:
        writer.write("blob", blob)
    return finish(packs, writer)


def test_many_objects_of_all_kinds(repository: Path, packs: Path) -> None:
    writer = open_writer(packs)
    blobs = [writer.write("blob", content(size)) for size in (*SIZES, *range(3000, 4000))]
    tree = writer.write("tree", b"".join(b"100644 %05d\0" % n + oid for n, oid in enumerate(blobs)))
    message = b"tree %s\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nm\n" % tree.hex().encode()
    commit = writer.write("commit", message)
    assert len(writer) == len(blobs) + 2
    assert writer.finish() is not None
    git(repository, "update-ref", "refs/heads/main", commit.hex())
    fsck(repository)
    assert len(git(repository, "ls-tree", "main").splitlines()) == len(blobs)


def test_each_object_is_written_once_and_known_ones_never(packs: Path) -> None:
    finished(packs, b"known")
    writer = open_writer(packs)
    assert writer.write("blob", b"known") == object_id("blob", b"known")
    assert writer.write("blob", b"new") == writer.write("blob", b"new") == object_id("blob", b"new")
    assert len(writer) == 1
    writer.abort()


def test_what_an_index_without_its_pack_names_is_written(packs: Path) -> None:
    finished(packs, b"known").unlink()
    writer = open_writer(packs)
    writer.write("blob", b"known")
    assert len(writer) == 1


def test_a_damaged_index_is_told(packs: Path) -> None:
    path = finished(packs, b"known").with_suffix(".idx")
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(FormatError, match="a damaged pack index"):
        open_writer(packs)


def test_an_aborted_one_leaves_nothing(packs: Path) -> None:
    writer = open_writer(packs)
    writer.write("blob", content(3 << 20))
    writer.abort()
    writer.abort()
    assert list(packs.iterdir()) == []


def test_the_same_pack_again_replaces_itself(repository: Path, packs: Path) -> None:
    writers = [open_writer(packs), PackWriter(os.fsencode(packs), b"tmp_y", threads=1)]
    third = PackWriter(os.fsencode(packs), b"tmp_z", threads=1)
    for blob in (b"a", b"b"):
        for writer in writers:
            writer.write("blob", blob)
    one = finish(packs, writers[0])
    one.chmod(0o644)
    one.write_bytes(b"damaged")
    assert finish(packs, writers[1]) == one
    # The same objects in another order are other bytes: neither may get the other's index.
    for blob in (b"b", b"a"):
        third.write("blob", blob)
    assert finish(packs, third) != one
    fsck(repository)


def test_nobody_writes_to_a_finished_pack(packs: Path) -> None:
    path = finished(packs, b"a")
    assert {each.stat().st_mode & 0o777 for each in (path, path.with_suffix(".idx"))} == {0o444}


def test_what_a_killed_run_left_is_removed(packs: Path) -> None:
    good = finished(packs, b"good")
    (packs / f"{TEMPORARY}x").touch()
    (packs / f"{TEMPORARY}x.index").touch()
    (packs / "pack-without-index.pack").touch()
    remove_unfinished(packs)
    assert sorted(packs.iterdir()) == sorted((good, good.with_suffix(".idx")))


def write_one(packs: Path) -> str:
    """As a commit does it: whatever goes wrong, the pack is aborted."""
    writer = open_writer(packs)
    try:
        writer.write("blob", content(5 << 20))
        return str(writer.finish())
    except OSError as error:
        writer.abort()
        return errno.errorcode[error.errno or 0]


def test_killed_before_any_system_call(repository: Path, packs: Path) -> None:
    steps = supervise(CHANGING, lambda: write_one(packs), never).calls
    (pack,) = packs.glob("*.pack")
    assert {call.name for call in steps} >= {"write", "sync", "rename"}
    for index in range(1, len(steps) + 1):
        for path in packs.iterdir():
            path.unlink()
        assert supervise(CHANGING, lambda: write_one(packs), at(index, KILL)).killed
        fsck(repository)
        if (packs / pack.name).with_suffix(".idx").exists():
            git(repository, "verify-pack", str(packs / pack.name))
        remove_unfinished(packs)
        assert {path.name for path in packs.iterdir()} <= {pack.name, f"{pack.stem}.idx"}


def test_a_full_disk_leaves_nothing(packs: Path) -> None:
    steps = supervise(CHANGING, lambda: write_one(packs), never).calls
    last = max(call.step for call in steps if call.name == "rename")
    for path in packs.iterdir():
        path.unlink()
    failures = 0
    for index in range(1, last):
        for path in packs.iterdir():
            path.unlink()

        def full(call: Call, index: int = index) -> int | None:
            return from_on(index)(call) if call.name in ("write", "sync") else None

        if supervise(CHANGING, lambda: write_one(packs), full).result == "ENOSPC":
            failures += 1
            assert not [path for path in packs.iterdir() if not path.name.startswith("pack-")]
    assert failures
