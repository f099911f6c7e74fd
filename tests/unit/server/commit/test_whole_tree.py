"""A commit of the whole tree equals its scan, and retained entries keep their place in it."""

import os
from pathlib import Path

import pytest
from blake3 import blake3

from huai_schema.entries import Entry, File
from huai_server.commit import remarks
from huai_server.commit.tree_reader import KEPT, LEFT_OUT
from huai_server.scan.types import ScanOptions
from tests.support import scan_oracle
from tests.support.committing import Upstream
from tests.support.tampering import INDEXED, indexed_upstream, when_read


def make_ordinary(root: Path) -> None:
    """Make ordinary directories, and one of each other sort between them."""
    for number in range(40):
        (root / f"d{number:02}/sub\n{number}").mkdir(parents=True)
        (root / f"d{number:02}/f").write_text(f"{number}")
        (root / f"d{number:02}/sub\n{number}/\\").write_text("x" * number)
        (root / f"d{number:02}/link").symlink_to("f")
    os.link(root / "d05/f", root / "d06/g")
    (root / "d10").chmod(0o700)
    (root / "d15/f").chmod(0o600)
    (root / "d20/.~tmp~").mkdir()
    os.mkfifo(root / "d25/fifo")


def make_crowd(root: Path) -> None:
    """Make a directory that comes in three parts; what is remarkable is in the second."""
    large = root / "large"
    for number in range(10_000):
        (large / f"{number:05}").write_text("x" * (number % 3))
    for number in range(100, 110):
        (large / f"{number:05}+").symlink_to(f"{number:05}\n")
    os.link(large / "00000", large / "00000+")
    os.link(large / "00001", large / "09999+")
    (large / "05000").chmod(0o600)
    (large / ".05001.abcdef").touch(mode=0o600)
    (large / "sub/below").mkdir(parents=True)
    os.mkfifo(large / "fifo")


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    upstream = Upstream(tmp_path)
    (upstream.tree / "large").mkdir()
    make_ordinary(upstream.tree)
    return upstream


def digest_of(root: Path, entry: Entry) -> bytes | None:
    if not isinstance(entry, File):
        return None
    return blake3((root / os.fsdecode(entry.path)).read_bytes()).digest()


@pytest.mark.parametrize("crowd", ["large", "."])
@pytest.mark.parametrize("digest", ["off", "now"])
def test_a_commit_is_what_a_scan_yields(upstream: Upstream, digest: str, crowd: str) -> None:
    """Also if the module's root is a large directory, of which a scan yields the whole."""
    upstream.configure(digest=digest)
    make_crowd(upstream.tree)
    if crowd == ".":
        upstream.configure(path=str(upstream.tree / "large"))
        upstream.tree /= "large"
    result = upstream.commit()
    entries = upstream.entries()
    alone = {
        path: entry._replace(link=None, digest=None) if isinstance(entry, File) else entry
        for path, entry in entries.items()
    }
    assert alone == scan_oracle.scan(upstream.tree, ScanOptions()).entries
    digests = {entry.digest for entry in entries.values() if isinstance(entry, File)}
    if digest == "now":
        assert digests == {digest_of(upstream.tree, entry) for entry in entries.values()} - {None}
    else:
        assert digests == {None}
    special = [b"d10", b"d15/f"] if crowd == "large" else []
    result_remarks: list[tuple[object, ...]] = [tuple(each) for each in result.remarks]
    assert result.head.info.skipped == (4 if special else 2)
    if crowd == "large":
        assert (remarks.UNREADABLE, 3, (*special, b"large/05000")) in result_remarks
        assert (remarks.RESERVED, 1, (b"d20/.~tmp~",)) in result_remarks
        assert (remarks.TEMPORARY, 1, (b"large/.05001.abcdef",)) in result_remarks
    assert len(upstream.links()) == (3 if special else 2)
    upstream.prove_sound()


def test_old_entries_stay_between_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that changes while it is read was a directory, its place among others."""
    upstream = indexed_upstream(tmp_path)
    make_ordinary(upstream.tree)
    upstream.commit()
    before = upstream.entries()
    (upstream.tree / "d33").rename(tmp_path / "away")
    (upstream.tree / "d33").write_text("x" * INDEXED)
    upstream.write("new", "y" * INDEXED)
    upstream.write("0", "z" * INDEXED)

    def change() -> None:
        upstream.write("d33", "changed")
        upstream.write("new", "changed")

    when_read(monkeypatch, change)
    result = upstream.commit()
    assert [(each.path, each.outcome) for each in result.problems] == [
        (b"d33", KEPT),
        (b"new", LEFT_OUT),
    ]
    after = upstream.entries()
    for path in (b"", b"0"):
        after.pop(path), before.pop(path)  # type: ignore[call-overload]
    assert after == before


def test_old_entries_stay_in_a_part_of_a_large_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of every part cannot be read now; one was a directory."""
    upstream = indexed_upstream(tmp_path, "large/00007", "large/05007", "large/09999")
    make_crowd(upstream.tree)
    names = ("00007", "05007", "09999", "sub")
    for name in names[:3]:
        upstream.write(f"large/{name}", "x" * INDEXED)
    upstream.commit()
    before = upstream.entries()
    (upstream.tree / "large/sub").rename(tmp_path / "away")
    for name in names:
        upstream.write(f"large/{name}", "y" * INDEXED)
    upstream.write("0", "z" * INDEXED)
    when_read(monkeypatch, lambda: [upstream.write(f"large/{name}", "z") for name in names])
    result = upstream.commit()
    stayed = [f"large/{name}".encode() for name in names]
    assert [(each.path, each.outcome) for each in result.problems] == [
        (path, KEPT) for path in stayed
    ]
    after = upstream.entries()
    assert after.keys() == before.keys()
    assert [after[path] for path in stayed] == [before[path] for path in stayed]  # type: ignore[index]


def test_an_audit_leaves_a_pack_that_git_made_meanwhile(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = indexed_upstream(short_path, "a")
    upstream.commit()
    upstream.write("b", "b" * INDEXED)
    upstream.commit()
    upstream.write("c", "c" * INDEXED)
    when_read(monkeypatch, lambda: upstream.git("repack", "-a", "-d", "-q"))
    before = {*upstream.repository.pack_folder.glob("*.pack")}
    assert upstream.audit().counts.added == 1
    (pack,) = upstream.repository.pack_folder.glob("*.pack")
    assert pack not in before
    upstream.prove_sound()
