"""Committing real trees: new entries, unchanged ones, and equal commits of equal trees."""

import os
import re
import shutil
from pathlib import Path

import pytest

from huai_schema.codec.commits import Counts, Totals
from huai_schema.paths import RelPath
from huai_server.commit.remarks import Remark
from huai_server.scan.root import EmptyRootError
from tests.support.committing import Upstream


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    upstream = Upstream(tmp_path)
    for number in range(6):
        upstream.write(f"d{number % 2}/f{number}", "x" * number, mtime=1_600_000_000)
    return upstream


def test_the_first_commit_holds_everything(upstream: Upstream) -> None:
    result = upstream.commit()
    assert result.changed
    assert (result.exit_code, result.problems) == (0, ())
    assert result.head.info.serial == 1
    assert result.head.info.totals == Totals(files=6, directories=3, symlinks=0, bytes=15)
    assert result.counts == Counts(added=9, new_bytes=15)
    assert result.head == upstream.head
    assert upstream.file("d1/f3") == upstream.file("d1/f3")._replace(size=3, mtime=16 * 10**17)
    upstream.prove_sound()


def test_an_unchanged_tree_makes_no_commit(upstream: Upstream) -> None:
    first = upstream.commit()
    packs = sorted(upstream.repository.pack_folder.iterdir())
    again = upstream.commit()
    assert not again.changed
    assert (again.head, again.exit_code) == (first.head, 0)
    assert sorted(upstream.repository.pack_folder.iterdir()) == packs


def test_what_changed_is_counted_and_committed(upstream: Upstream) -> None:
    first = upstream.commit()
    upstream.write("d0/f0", "longer", mtime=1_600_000_000)
    upstream.write("d1/new", "n")
    upstream.write("d0/f2", "xx", mtime=1_600_000_001)
    (upstream.tree / "d1/f1").unlink()
    result = upstream.commit()
    # The directory whose entries changed has another time now.
    assert result.counts == Counts(added=1, removed=1, changed=3, new_bytes=7)
    assert result.head.info.serial == 2
    assert upstream.paths() == {"d0", "d1", "d1/new", *(f"d{n % 2}/f{n}" for n in (0, 2, 3, 4, 5))}
    assert upstream.git("rev-parse", "main~1") == first.head.commit
    upstream.prove_sound()


def test_a_renamed_directory_keeps_its_tree(upstream: Upstream) -> None:
    for number in range(200):
        upstream.write(f"big/{number}")
    upstream.commit()
    packs = set(upstream.repository.pack_folder.iterdir())
    (upstream.tree / "big").rename(upstream.tree / "huge")
    result = upstream.commit()
    assert result.counts == Counts(changed=1, moved=201, new_bytes=0)
    (added,) = [
        path
        for path in set(upstream.repository.pack_folder.iterdir()) - packs
        if path.suffix == ".pack"
    ]
    assert added.stat().st_size < 1000
    assert result.hashed_files == 0


def test_equal_trees_have_equal_ids_whatever_their_history(
    tmp_path: Path, upstream: Upstream
) -> None:
    for number in range(400):
        upstream.write(f"flat/{number:03}", str(number), mtime=number)
    upstream.commit()
    copy = Upstream(tmp_path / "other")
    shutil.copytree(upstream.tree, copy.tree, dirs_exist_ok=True, symlinks=True)
    extra = copy.write("flat/extra")
    copy.commit()
    extra.unlink()
    for path in [upstream.tree, *upstream.tree.rglob("*")]:
        status = path.stat()
        os.utime(copy.tree / path.relative_to(upstream.tree), ns=(0, status.st_mtime_ns))
    result = copy.commit()
    assert result.head.info.serial == 2
    assert copy.entries_id == upstream.entries_id
    assert result.head.tree != upstream.head.tree  # the descriptors differ


def test_a_module_keeps_its_identity(upstream: Upstream) -> None:
    upstream.commit()
    first = upstream.repository.snapshot(upstream.head)[0].identity
    assert re.fullmatch("[0-9a-f]{32}", first)
    assert not upstream.commit().changed
    upstream.write("new")
    upstream.commit()
    assert upstream.repository.snapshot(upstream.head)[0].identity == first
    shutil.rmtree(upstream.root)
    upstream.commit()
    assert upstream.repository.snapshot(upstream.head)[0].identity != first


def test_paths_longer_than_the_system_takes(short_path: Path) -> None:
    upstream = Upstream(short_path)
    directory = os.open(upstream.tree, os.O_RDONLY)
    for _ in range(15):
        os.mkdir(b"d" * 255, dir_fd=directory)
        below = os.open(b"d" * 255, os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    name = b"f" * 250
    handle = os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=directory)
    os.write(handle, b"content")
    os.close(handle)
    os.close(directory)
    result = upstream.commit()
    assert result.problems == ()
    assert upstream.file("/".join(["d" * 255] * 15) + "/" + "f" * 250).digest is not None


def test_without_digests(upstream: Upstream) -> None:
    upstream.configure(digest="off")
    result = upstream.commit()
    assert result.hashed_files == 0
    assert upstream.file("d0/f4").digest is None
    assert not upstream.places.digests.exists()
    upstream.configure(digest="now")
    assert upstream.commit().hashed_files == 6
    assert upstream.file("d0/f4").digest is not None
    upstream.prove_sound()


def test_excluded_and_temporary_names_are_left_out(upstream: Upstream) -> None:
    upstream.configure(exclude=("*.log", "/d1/"))
    for path in ("d0/x.log", "d0/.~tmp~/half", "d0/.name.Ab3xYz"):
        upstream.write(path)
    (upstream.tree / "d0/.name.Ab3xYz").chmod(0o600)
    result = upstream.commit()
    assert upstream.paths() == {"d0", "d0/f0", "d0/f2", "d0/f4"}
    assert result.head.info.skipped == 2
    assert (result.exit_code, result.remarks) == (
        0,
        (
            Remark("temporary", 1, (RelPath(b"d0/.name.Ab3xYz"),)),
            Remark("reserved", 1, (RelPath(b"d0/.~tmp~"),)),
        ),
    )


def test_files_by_which_ftpsync_knows_that_it_runs_are_left_out(upstream: Upstream) -> None:
    """They are at the top while its hooks run; anywhere else they are ordinary files."""
    names = ("Archive-Update-in-Progress-mirror.example", "Archive-Update-Required-mirror.example")
    for name in names:
        upstream.write(name)
        upstream.write(f"d0/{name}")
    result = upstream.commit()
    assert {path for path in upstream.paths() if "Archive" in path} == {f"d0/{n}" for n in names}
    assert (result.head.info.skipped, result.remarks) == (0, ())


def test_what_others_may_not_read_is_remarked(upstream: Upstream) -> None:
    """A daemon with its default user cannot send it, and downstreams end with 24 each time."""
    upstream.write("closed/below")
    (upstream.tree / "closed").chmod(0o751)
    (upstream.tree / "d0/f2").chmod(0o640)
    for number in range(20):
        upstream.write(f"d1/s{number:02}").chmod(0o600)
    (remark,) = upstream.commit().remarks
    first_paths = [b"closed", b"d0/f2", *(b"d1/s%02d" % number for number in range(8))]
    assert (remark.kind, remark.number, list(remark.paths)) == ("unreadable", 22, first_paths)
    upstream.configure(check_readable=False)
    assert upstream.commit().remarks == ()


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("how", ["empty", "missing", "file", "dangling", "excluded", "hollow"])
def test_a_root_with_nothing_in_it_is_refused(upstream: Upstream, how: str, *, first: bool) -> None:
    before = None if first else upstream.commit().head
    if how == "excluded":
        upstream.configure(exclude=("*",))
    else:
        shutil.rmtree(upstream.tree)
    if how in ("empty", "hollow"):
        upstream.tree.mkdir()
    if how == "hollow":
        os.mkfifo(upstream.tree / "only-a-fifo")
    if how == "file":
        upstream.tree.touch()
    if how == "dangling":
        upstream.tree.symlink_to("nowhere")
    with pytest.raises(EmptyRootError) as caught:
        upstream.commit()
    assert caught.value.exit_code == 42
    assert str(upstream.tree) in caught.value.message
    if before is not None:
        assert upstream.head == before
    elif upstream.places.repository.exists():
        assert upstream.repository.head() is None


def test_an_empty_root_is_committed_on_demand(upstream: Upstream) -> None:
    upstream.commit()
    shutil.rmtree(upstream.tree)
    upstream.tree.mkdir()
    result = upstream.commit(allow_empty=True)
    assert result.counts == Counts(removed=8, changed=1, new_bytes=0)
    assert result.head.info.totals.entries == 1
    upstream.prove_sound()


def test_a_missing_root_is_refused_even_then(upstream: Upstream) -> None:
    shutil.rmtree(upstream.tree)
    with pytest.raises(EmptyRootError):
        upstream.commit(allow_empty=True)


def test_a_root_may_be_a_symlink(upstream: Upstream) -> None:
    tree = upstream.commit().head.tree
    upstream.tree.rename(upstream.tree.with_name("elsewhere"))
    upstream.tree.symlink_to("elsewhere")
    result = upstream.commit()
    assert not result.changed
    assert result.head.tree == tree
