"""Tests which events are new, in files with what File::Rsync::Mirror::Recent recorded."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from huai_client.metadata.http import RolledBackError, UpstreamDownError
from huai_client.metadata.source.recent import RecentMark, read_events, shortest_interval

FILES = Path(__file__).with_name("recent")
FIRST = "1700000000.38568"
"""The epoch up to which all events were merged into the file that is missing here."""
EVENTS = (
    ("1700007200.37766", "delete a"),
    ("1700027200.34675", "new d/e"),
    ("1700031200.36327", "new f"),
    ("1700121200.46157", "delete d/b"),
    ("1700123000.43383", "new c"),
    ("1700126000.395", "new g"),
)


class _Folder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: list[str] = []

    @contextmanager
    def fetch(self, name: str) -> Iterator[Path]:
        self.names.append(name)
        if not (self.folder / name).exists():
            raise UpstreamDownError(name)
        yield self.folder / name

    def events(self, epoch: str, dirtymark: str) -> set[str] | None:
        past = RecentMark(epoch, dirtymark)
        mark, changes = read_events("RECENT-1h.json", past, self.fetch)
        assert mark.epoch == EVENTS[-1][0]
        if changes is None:
            return None
        deletions = {f"delete {path.decode()}" for path in changes.removed}
        return deletions | {f"new {path.decode()}" for path in changes.new}


@pytest.fixture
def folder() -> _Folder:
    return _Folder(FILES)


@pytest.fixture
def dirtymark(folder: _Folder) -> str:
    mark, changes = read_events("RECENT-1h.json", None, folder.fetch)
    assert changes is None
    return mark.dirtymark


@pytest.mark.parametrize("number", range(len(EVENTS) + 1))
def test_files_are_read_until_one_has_the_last_known_event(
    folder: _Folder, dirtymark: str, number: int
) -> None:
    epoch = EVENTS[number - 1][0] if number else FIRST
    expected = {event for _, event in EVENTS[number:]}
    if "delete d/b" in expected:
        expected.add("delete d")  # if it is not listed
    folder.names.clear()
    assert folder.events(epoch, dirtymark) == expected
    assert len(folder.names) == (1 if number > 4 else 2)


def test_a_gap_and_another_dirtymark_ask_for_the_whole_tree(
    folder: _Folder, dirtymark: str
) -> None:
    assert folder.events("1699999999", dirtymark) is None
    assert folder.events(EVENTS[-1][0], "00") is None
    assert folder.events(FIRST, dirtymark) is not None


def test_an_older_file_is_refused(folder: _Folder, dirtymark: str) -> None:
    with pytest.raises(RolledBackError, match="older than the last one"):
        folder.events("1700126000.3950000000000000001", dirtymark)


def test_a_directory_that_came_back_asks_for_the_whole_tree(tmp_path: Path, dirtymark: str) -> None:
    shutil.copytree(FILES, tmp_path, dirs_exist_ok=True)
    older = tmp_path / "RECENT-6h.json"
    older.write_text(older.read_text().replace('"d/b"', '"d"'))
    assert _Folder(tmp_path).events(FIRST, dirtymark) is None


def test_the_file_of_the_shortest_interval_is_the_newest() -> None:
    names = ["RECENT-6h.json", "RECENT-1d.json", "RECENT-Z.json", "RECENT-1h.yaml", "RECENT-1.js"]
    assert shortest_interval(names) == "RECENT-6h.json"
    assert shortest_interval([*names, "RECENT-90s.json", "RECENT-h.json"]) == "RECENT-90s.json"
    assert shortest_interval(["RECENT-Z.json", "RECENT-../1h.json"]) == ""
