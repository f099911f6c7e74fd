"""The open directories of a tree, on kernels with and without openat2(2)."""

import errno
import os
import stat
from pathlib import Path

import pytest

from huai_client.tree import PathError, View
from tests.support.local_trees import at, open_handles
from tests.support.single_tree import SingleTree
from tests.support.system_calls import Call, supervise

REFUSALS = [None, errno.ENOSYS, errno.EPERM]
"""The results of openat2(2): success, no such call, or a filter that does not know it."""


def under(refusal: int | None, dest: Path) -> object:
    """Return the result of `look` in a child whose kernel refuses openat2."""

    def decide(_: Call) -> int | None:
        return refusal

    outcome = supervise(("open beneath",), lambda: look(dest), decide)
    assert bool(outcome.calls)
    return outcome.result


def look(dest: Path) -> list[object]:
    with View(dest) as view:
        result: list[object] = [stat.S_IFMT(status.st_mode) for status in results(view)]
        for path in (b"to/in", b"file/in", b"none/in"):
            result.append(view.stat(at(path)))
            with pytest.raises(PathError) as caught:
                view.listing(at(path))
            result.append(caught.value.reason)
        return result


def results(view: View) -> list[os.stat_result]:
    paths = (b"", b"a", b"a/b", b"a/b/f", b"a/b/f", b"to")
    return [status for path in paths if (status := view.stat(at(path)))]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_the_same_is_found(short_path: Path, refusal: int | None) -> None:
    (short_path / "a/b").mkdir(parents=True)
    (short_path / "a/b/f").touch()
    (short_path / "file").touch()
    (short_path / "to").symlink_to("a")
    kinds = [stat.S_IFDIR] * 3 + [stat.S_IFREG] * 2 + [stat.S_IFLNK]
    no_directory = "a component of the path is not a directory, or is a symlink"
    missing = os.strerror(errno.ENOENT)
    reasons = [None, no_directory, None, no_directory, None, missing]
    assert under(refusal, short_path) == kinds + reasons


@pytest.mark.parametrize("refusal", REFUSALS)
def test_nothing_leads_out(short_path: Path, refusal: int | None) -> None:
    (short_path / "dest").mkdir()
    (short_path / "outside/in").mkdir(parents=True)
    (short_path / "dest/to").symlink_to(short_path / "outside")

    def work() -> str:
        with SingleTree(short_path / "dest") as tree:
            for path in (b"to", b"to/in", b"..", b"../outside", b"a//b", b"/outside", b"."):
                with pytest.raises(PathError):
                    tree.listing(at(path))
            with pytest.raises(PathError):
                tree.stat(at(b"../outside/in"))
        return "refused"

    assert supervise(("open beneath",), work, lambda _: refusal).result == "refused"


def test_few_handles_are_kept_and_those_in_use_longest(short_path: Path) -> None:
    for number in range(400):
        (short_path / str(number)).mkdir()
    before = open_handles()
    with View(short_path) as view:
        for number in range(400):
            view.listing(at(b"%d" % number))
            view.listing(at(b"7"))
        assert open_handles() <= before + 132
        (short_path / "7").rmdir()
        (short_path / "399").rmdir()
        # Their handles are still there.
        assert view.listing(at(b"7")) == view.listing(at(b"399")) == ([], [])
        (short_path / "0").rmdir()
        with pytest.raises(PathError):
            view.listing(at(b"0"))
    assert open_handles() == before


def test_after_close_nothing_is_opened(short_path: Path) -> None:
    view = View(short_path)
    view.close()
    with pytest.raises(PathError, match=os.strerror(errno.EBADF)):
        view.listing(at(b"a"))
