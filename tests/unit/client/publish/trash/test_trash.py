"""A sync loses no file, and the trash is purged."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from huai_client.publish.executor import execute
from huai_client.publish.trash import Trash, TrashBatch, parse_name
from huai_client.tree import PathError
from huai_client.tree.destination import NoSpaceError
from tests.support.local_trees import (
    T0,
    Staged,
    at,
    content,
    directory,
    file,
    in_order,
    linked,
    plan_for,
    symlink,
)
from tests.support.single_tree import SingleTree
from tests.support.system_calls import supervise

LEADER = file(b"leader", 30)
BEFORE = in_order(
    [
        directory(b""),
        directory(b"d", mode=0o555),
        directory(b"d/deep"),
        file(b"d/deep/gone", 5, mode=0o600),
        file(b"d/changes", 10),
        file(b"stays"),
        file(b"touched"),
        symlink(b"turns", b"left"),
        symlink(b"gone-link", b"somewhere"),
        LEADER,
        linked(b"other", LEADER),
        directory(b"becomes-file"),
        file(b"becomes-file/f", 3),
        file(b"becomes-directory", 4),
    ]
)
AFTER = in_order(
    [
        directory(b"", mtime=3),
        directory(b"d", mode=0o555),
        file(b"d/changes", 4000, mtime=9),
        file(b"stays"),
        file(b"touched", mtime=9),
        symlink(b"turns", b"right"),
        LEADER,
        file(b"other", 8),
        file(b"becomes-file", 6),
        directory(b"becomes-directory"),
        file(b"becomes-directory/f", 6),
    ]
)


def keeping(dest: Path, serial: int) -> SingleTree:
    """Make a tree and its trash."""
    return SingleTree(dest, owners=True, keep=partial(Trash(dest).new_batch, serial))


@pytest.fixture(name="dest")
def tree_before(short_path: Path) -> Path:
    with keeping(short_path, 1) as tree:
        report = execute(plan_for(tree, BEFORE), tree, Staged(short_path), lambda *_: None)
    assert not report.problems
    assert trash(short_path) == {}
    return short_path


def bring(dest: Path, serial: int = 41) -> None:
    with keeping(dest, serial) as tree:
        report = execute(plan_for(tree, AFTER), tree, Staged(dest), lambda *_: None)
    assert not report.problems


def trash(dest: Path) -> dict[str, Path]:
    """Return the content of all batches, by path."""
    tops = (dest / ".~tmp~/huai-trash").glob("*")
    return {
        str(path.relative_to(top)): path
        for top in tops
        for path in top.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }


def test_what_goes_is_kept_as_it_was(dest: Path) -> None:
    bring(dest)
    kept_files = trash(dest)
    assert set(kept_files) == {
        "d/deep/gone",
        "d/changes",
        "turns",
        "gone-link",
        "other",
        "becomes-file/f",
        "becomes-directory",
    }
    deleted = kept_files["d/deep/gone"]
    assert deleted.read_bytes() == content(b"d/deep/gone", 5)
    assert (deleted.stat().st_mode & 0o7777, deleted.stat().st_mtime_ns) == (0o600, T0)
    assert kept_files["d/changes"].read_bytes() == content(b"d/changes", 10)
    assert kept_files["turns"].readlink() == Path("left")
    assert kept_files["gone-link"].readlink() == Path("somewhere")
    assert kept_files["other"].samefile(dest / "leader")
    assert (dest / "d/changes").stat().st_nlink == 1


def test_each_run_has_its_batch(dest: Path) -> None:
    bring(dest)
    with keeping(dest, 42) as tree:
        tree.remove(at(b"stays"))
    with keeping(dest, 42) as tree:
        tree.remove(at(b"touched"))
        tree.remove(at(b"never/was"))
        tree.remove(at(b"never"))
    assert [each.serial for each in Trash(dest).batches()] == [41, 42, 42]
    assert {"stays", "touched"} < set(trash(dest))


@pytest.mark.parametrize("refusal", [errno.EPERM, errno.EMLINK, errno.ENOTSUP])
def test_where_no_hardlink_can_be_made_nothing_is_replaced(dest: Path, refusal: int) -> None:
    def work() -> str:
        with keeping(dest, 1) as tree, pytest.raises(PathError) as caught:
            tree.symlink(symlink(b"turns", b"right"))
        return caught.value.reason

    reason = supervise(("link",), work, lambda _: refusal).result
    assert reason == "cannot be kept in the trash: no hardlink can be made"
    assert (dest / "turns").readlink() == Path("left")


@pytest.mark.parametrize(
    "batch",
    [TrashBatch(0, 0, 0), TrashBatch(1_795_248_301, 0, 41), TrashBatch(1_795_248_301, 12, 9)],
)
def test_a_name_says_it_all(batch: TrashBatch) -> None:
    assert parse_name(batch.name) == batch


@pytest.mark.parametrize(
    "name",
    [b"", b"lost+found", b"1-20261121T080501", b"1-20261399T080501Z", b"01-20261121T080501Z"],
)
def test_a_name_that_is_none(name: bytes) -> None:
    assert parse_name(name) is None


@pytest.fixture(name="full")
def trash_of_three(dest: Path) -> Iterator[Path]:
    for since in (1000, 2000, 3000):
        place = dest / ".~tmp~/huai-trash" / os.fsdecode(TrashBatch(since, 0, 1).name) / "a/b"
        place.mkdir(parents=True)
        (place / "c").write_bytes(b"c")
        os.symlink("/", place / "link")
    yield dest
    assert Path("/etc").exists()


def since(dest: Path) -> list[int]:
    return [each.since for each in Trash(dest).batches()]


def test_what_was_there_for_its_time_goes(full: Path) -> None:
    (full / ".~tmp~/huai-trash/mine").mkdir()
    assert Trash(full).purge("1500s", 3499) == 2000
    assert since(full) == [2000, 3000]
    assert Trash(full).purge("1500s", 3499) == 2000
    assert Trash(full).purge("0", 3499) == 0
    assert os.listdir(full / ".~tmp~/huai-trash") == ["mine"]


def test_the_last_takes_the_folders_along(full: Path) -> None:
    shutil.rmtree(full / ".~tmp~/huai")
    assert Trash(full).purge("0", 4000) == 0
    assert not (full / ".~tmp~").exists()
    assert Trash(full).purge("0", 4000) == 0


def short(dest: Path, needed: int, *, in_bytes: bool) -> Callable[[], str]:
    """Return work that needs the room of some files in the trash."""

    def work() -> str:
        lacking = needed - (3 - len(since(dest)))
        if lacking <= 0:
            return "done"
        if in_bytes:
            # Less than the whole file: a batch is removed as a whole.
            raise NoSpaceError("full", bytes_short=4096 * (lacking - 1) + 1)
        raise NoSpaceError("full", inodes_short=2 * lacking)

    return work


@pytest.mark.parametrize("in_bytes", [False, True])
@pytest.mark.parametrize(("needed", "left"), [(0, 3), (1, 2), (2, 1), (3, 0)])
def test_where_the_disk_is_short_the_oldest_go(
    full: Path, needed: int, left: int, *, in_bytes: bool
) -> None:
    messages: list[str] = []
    work = short(full, needed, in_bytes=in_bytes)
    assert Trash(full).free_space_and_retry(work, messages.append) == "done"
    assert since(full) == [1000, 2000, 3000][3 - left :]
    assert len(messages) == needed


@pytest.mark.parametrize("in_bytes", [False, True])
def test_where_all_of_it_would_not_do_none_goes(full: Path, *, in_bytes: bool) -> None:
    with pytest.raises(NoSpaceError):
        Trash(full).free_space_and_retry(short(full, 4, in_bytes=in_bytes), lambda _: None)
    assert since(full) == [1000, 2000, 3000]


def test_what_has_another_name_makes_no_room(full: Path) -> None:
    for number, place in enumerate((full / ".~tmp~/huai-trash").glob("*/a/b")):
        (full / f"name{number}").hardlink_to(place / "c")
    with pytest.raises(NoSpaceError):
        Trash(full).free_space_and_retry(short(full, 1, in_bytes=True), lambda _: None)
    assert since(full) == [1000, 2000, 3000]


def test_a_trash_that_is_a_symlink_is_left_alone(dest: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside" / os.fsdecode(TrashBatch(5, 0, 1).name)
    outside.mkdir(parents=True)
    (dest / ".~tmp~").mkdir(exist_ok=True)
    os.symlink(outside.parent, dest / ".~tmp~/huai-trash")
    with pytest.raises(PathError):
        Trash(dest).purge("0", 100)
    assert outside.exists()
