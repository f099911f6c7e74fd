"""Many files hashed by the engine: with the digests of `digest_here`, and interruptible."""

import errno
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from huai_client.diff.candidate import Candidate, Move
from huai_client.diff.candidates import digest_here
from huai_client.diff.renames import RenamedView
from huai_client.diff.table import CandidateTable
from huai_client.tree import Tree, View
from huai_client.tree.errors import StorageError
from huai_schema.paths import RelPath
from tests.support.local_trees import at, file, open_handles
from tests.support.system_calls import supervise
from tests.support.unprivileged import run_unprivileged

DAMAGED = b"damaged"
ENDLESS = 1 << 40


def nothing() -> None:
    pass


def doubtful(*paths: bytes) -> CandidateTable:
    """Return surveyed files with a time other than the expected one."""
    expected = [file(path) for path in paths]
    digests = [candidate._replace(mtime=0, digest=None) for candidate in expected]
    return CandidateTable.of(
        [
            Candidate(candidate.path, have, candidate, differing=frozenset({"mtime"}))
            for candidate, have in zip(expected, digests, strict=True)
        ]
    )


def hashed(view: View, table: CandidateTable) -> dict[RelPath, bytes | None]:
    assert table.engine.unhashed() == len(table)
    view.hash_candidates(table.engine, DAMAGED, nothing)
    assert table.engine.unhashed() == 0
    return {candidate.path: candidate.digest for candidate in table}


def assert_same(view: View, *paths: bytes) -> dict[RelPath, bytes | None]:
    digests = hashed(view, doubtful(*paths))
    assert digests == {path: digest_here(view, path) for path in map(at, paths)}
    return digests


def test_what_is_not_the_file_any_more(short_path: Path) -> None:
    (short_path / "d").mkdir()
    for name in ("good", "d/good", "name\n\udcff"):
        (short_path / name).write_bytes(os.fsencode(name))
    (short_path / "folder").mkdir()
    (short_path / "link").symlink_to("good")
    (short_path / "through").symlink_to("d")
    (short_path / "loop").symlink_to("loop")
    os.mkfifo(short_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(short_path / "socket"))
    size = {b"good", b"d/good", b"name\n\xff"}
    damaged = [b"folder", b"link", b"through/good", b"loop", b"loop/f", b"pipe", b"socket"]
    damaged += [b"gone", b"gone/f", b"good/f", b"x" * 255]
    before = open_handles()
    with View(short_path) as view:
        digests = assert_same(view, *size, *damaged)
    assert open_handles() == before
    assert {path for path, digest in digests.items() if digest != DAMAGED} == size


def test_where_files_are_before_directories_are_renamed(short_path: Path) -> None:
    for name in ("old/deep", "other"):
        (short_path / name).mkdir(parents=True)
        (short_path / name / "f").write_text(name)
    with View(short_path) as view:
        ahead = RenamedView(view, [Move(at(b"old"), at(b"new")), Move(at(b"other"), at(b"old"))])
        digests = assert_same(ahead, b"new/deep/f", b"old/f", b"old/deep/f", b"other/f")
    assert [digest == DAMAGED for digest in digests.values()] == [False, False, True, True]


def steps_without_permission(folder: Path) -> None:
    (folder / "closed" / "d").mkdir(parents=True)
    for name in ("closed/f", "closed/d/f", "secret", "good"):
        (folder / name).write_text(name)
    (folder / "secret").chmod(0)
    (folder / "closed").chmod(0)
    paths = (b"closed/f", b"secret", b"good")
    with View(folder) as view:
        digests = assert_same(view, *paths, b"closed/d/f")
        assert [digest == DAMAGED for digest in digests.values()] == [True, True, False, True]
    with Tree(folder) as tree:
        digests = hashed(tree, doubtful(*paths))
        assert [digest == DAMAGED for digest in digests.values()] == [True, True, False]
        digests = hashed(tree, doubtful(b"closed/d/f"))  # opens up what is above
        assert DAMAGED not in digests.values()
        assert_same(tree, *paths, b"closed/d/f")
    assert (folder / "closed").stat().st_mode & 0o777 == 0


def test_who_opens_up_directories_does_so_here(short_path: Path) -> None:
    run_unprivileged(steps_without_permission, short_path)


def test_a_disk_that_fails_ends_it(short_path: Path) -> None:
    (short_path / "f").touch()

    def message_of(read: Callable[[View], object]) -> object:
        def work() -> str:
            with pytest.raises(StorageError) as raised:
                read(view)
            return raised.value.message

        return supervise(("open",), work, lambda _: errno.EIO).result

    with View(short_path) as view:
        message = message_of(lambda view: hashed(view, doubtful(b"f")))
        assert message == message_of(lambda view: digest_here(view, at(b"f")))


def over() -> None:
    raise TimeoutError


def test_what_is_asked_now_and_then_ends_it_in_the_middle_of_a_file(short_path: Path) -> None:
    (short_path / "f").touch()
    os.truncate(short_path / "f", ENDLESS)
    table, began, handles = doubtful(b"f"), time.monotonic(), open_handles()
    with View(short_path) as view, pytest.raises(TimeoutError):
        view.hash_candidates(table.engine, DAMAGED, over)
    assert time.monotonic() - began < 5
    assert [candidate.digest for candidate in table] == [None]
    assert open_handles() == handles
