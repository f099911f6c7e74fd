"""Renames that replace nothing, also on kernels that cannot refuse to replace."""

import errno
import os
from pathlib import Path

import pytest

from huai_client.tree import PathError, Tree
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


def test_all_is_synced(short_path: Path) -> None:
    with Tree(short_path) as tree:

        def work() -> None:
            tree.sync()
            tree.sync_top()

        calls = supervise(("sync", "syncfs"), work, lambda _: None).calls
    assert [call.name for call in calls] == ["syncfs", "sync"]
