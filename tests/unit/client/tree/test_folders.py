"""The open directories of a tree, on kernels with and without openat2(2)."""

import errno
import os
import stat
from pathlib import Path

import pytest

from huai_client.tree import PathError, View
from huai_schema.paths import join
from tests.support.local_trees import at, directory, open_handles
from tests.support.single_tree import SingleTree
from tests.support.system_calls import Call, supervise
from tests.support.unprivileged import run_unprivileged

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


def test_a_path_that_is_too_long_for_one_look_up(short_path: Path) -> None:
    deep, handle = at(b""), os.open(short_path, os.O_PATH)
    for _ in range(20):
        deep = join(deep, b"x" * 255)
        os.mkdir(b"x" * 255, dir_fd=handle)
        inner = os.open(b"x" * 255, os.O_PATH, dir_fd=handle)
        os.close(handle)
        handle = inner
    assert len(deep) > 4096
    with View(short_path) as view:
        assert view.listing(deep) == ([], [])
        status = view.stat(deep)
        assert status is not None
        assert status.st_ino == os.fstat(handle).st_ino
    os.close(handle)


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


def steps_in_a_closed_directory(folder: Path) -> None:
    (folder / "a/b/c").mkdir(parents=True)
    for path in ("a/b", "a"):
        (folder / path).chmod(0)
    with SingleTree(folder) as tree:
        assert tree.stat(at(b"a/b/c")) is not None
        assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o700
        tree.move(at(b"a"), at(b"moved"))
        tree.make_directory(at(b"a"))
        tree.set_directory(directory(b"moved", mode=0o500))
    assert stat.S_IMODE((folder / "moved").stat().st_mode) == 0o500
    (folder / "moved").chmod(0o700)
    assert stat.S_IMODE((folder / "moved/b").stat().st_mode) == 0
    assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o700


def test_modes_come_back_where_a_directory_is_then(short_path: Path) -> None:
    run_unprivileged(steps_in_a_closed_directory, short_path)


def test_after_close_nothing_is_opened(short_path: Path) -> None:
    view = View(short_path)
    view.close()
    with pytest.raises(PathError, match=os.strerror(errno.EBADF)):
        view.listing(at(b"a"))
