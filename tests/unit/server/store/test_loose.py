"""Loose objects: as git writes and reads them, and nothing else."""

import subprocess
import zlib
from pathlib import Path

import pytest

from huai_schema.errors import FormatError
from huai_server.store.loose import read_loose, write_loose
from huai_server.store.repository import Repository
from tests.support.git_objects import object_id

CONTENT = b"tree\0 and more\n" * 9


@pytest.fixture(name="path")
def repository_path(tmp_path: Path) -> Path:
    return Repository.create(tmp_path / "repository").path


def git(path: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    command = ["git", "-C", str(path), *arguments]
    return subprocess.run(command, check=True, input=stdin, capture_output=True, timeout=60).stdout


def place_of(path: Path, oid: bytes) -> Path:
    return path / "objects" / oid.hex()[:2] / oid.hex()[2:]


def test_git_reads_what_is_written(path: Path) -> None:
    oid = write_loose(path, "blob", CONTENT)
    assert git(path, "cat-file", "blob", oid.hex()) == CONTENT
    assert write_loose(path, "blob", CONTENT) == oid
    assert read_loose(path, oid) == ("blob", CONTENT)


def test_what_git_writes_is_read(path: Path) -> None:
    oid = bytes.fromhex(git(path, "hash-object", "-w", "--stdin", stdin=CONTENT).decode())
    assert oid == object_id("blob", CONTENT)
    assert Repository(path).read(oid, "blob") == CONTENT
    with pytest.raises(FormatError, match="a tree was expected"):
        Repository(path).read(oid, "tree")


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"no zlib",
        zlib.compress(b"blob 3\0four"),
        zlib.compress(b"blob 03\0abc"),
        zlib.compress(b"tag 3\0abc"),
        zlib.compress(b"blob"),
        zlib.compress(b"blob 3\0abc")[:-3],
        zlib.compress(b"blob %d\0" % (1 << 26) + bytes((1 << 26) + 64)),
    ],
    ids=["empty", "noise", "length", "zero", "kind", "header", "cut", "huge"],
)
def test_damage_is_refused(path: Path, damaged: bytes) -> None:
    place = place_of(path, bytes(20))
    place.parent.mkdir()
    place.write_bytes(damaged)
    with pytest.raises(FormatError, match="the object cannot be read"):
        read_loose(path, bytes(20))


def test_another_object_under_an_id_is_refused(path: Path) -> None:
    place = place_of(path, bytes(20))
    place.parent.mkdir()
    place.write_bytes(zlib.compress(b"blob 3\0abc"))
    with pytest.raises(FormatError, match="its id is wrong"):
        Repository(path).read(bytes(20), "blob")
