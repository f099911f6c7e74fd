"""Renames that replace nothing, also on kernels that cannot refuse to replace."""

import errno
import os
from pathlib import Path

import pytest

from huai_client.tree import PathError, Tree
from huai_native._native import rename_noreplace
from tests.support.local_trees import at
from tests.support.single_tree import SingleTree
from tests.support.system_calls import supervise

REFUSALS = pytest.mark.parametrize("refusal", [None, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP])


def moved(dest: Path, refusal: int | None) -> object:
    """Return why `a` was not moved to `b`, or an empty text."""

    def work() -> str:
        with SingleTree(dest) as tree:
            try:
                tree.move(at(b"a"), at(b"b\xff"))
            except PathError as error:
                return error.reason
        return ""

    outcome = supervise(("rename by flags",), work, lambda _: refusal)
    assert outcome.calls
    return outcome.result


@REFUSALS
def test_to_where_nothing_is(short_path: Path, refusal: int | None) -> None:
    (short_path / "a").mkdir()
    assert moved(short_path, refusal) == ""
    assert os.listdir(os.fsencode(short_path)) == [b"b\xff"]


@REFUSALS
def test_over_something(short_path: Path, refusal: int | None) -> None:
    (short_path / "a").mkdir()
    present = short_path / os.fsdecode(b"b\xff")
    present.symlink_to("nowhere")
    assert moved(short_path, refusal) == os.strerror(errno.EEXIST)
    assert present.is_symlink()
    assert (short_path / "a").is_dir()


def test_an_error_is_not_taken_for_a_lack(short_path: Path) -> None:
    (short_path / "a").mkdir()
    assert moved(short_path, errno.EACCES) == os.strerror(errno.EACCES)
    assert (short_path / "a").is_dir()


@pytest.mark.parametrize(("refusal", "supported"), [(None, True), (errno.EINVAL, False)])
def test_whether_the_kernel_can(tmp_path: Path, refusal: int | None, *, supported: bool) -> None:
    (tmp_path / "a").touch()
    handle = os.open(tmp_path, os.O_RDONLY)
    work = lambda: rename_noreplace(handle, b"a", b"b")  # noqa: E731
    assert supervise(("rename by flags",), work, lambda _: refusal).result is supported
    assert (tmp_path / "b").exists() is supported
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    with pytest.raises(FileExistsError):
        rename_noreplace(handle, b"a", b"b")
    os.close(handle)


def test_all_is_synced(short_path: Path) -> None:
    with Tree(short_path) as tree:

        def work() -> None:
            tree.sync()
            tree.sync_top()

        calls = supervise(("sync", "syncfs"), work, lambda _: None).calls
    assert [call.name for call in calls] == ["syncfs", "sync"]
