"""The paths that a comparison reads, their order, and its reports of unreadable ones."""

from pathlib import Path

from huai_client.diff.compare import Extraneous, Match, Missing
from huai_client.tree import View
from huai_client.tree.view import Unreadable
from huai_schema.entries import Directory, Entry
from huai_schema.paths import ROOT
from tests.support.comparing import compared
from tests.support.local_trees import directory, file
from tests.support.unprivileged import run_unprivileged

NOTHING: list[Entry] = [Directory(ROOT, 0)]


def paths(folder: Path) -> list[bytes]:
    with View(folder) as view:
        findings = compared(view, NOTHING)
        return [each.path for each in findings if isinstance(each, Extraneous)]


def test_extraneous_leaves_come_behind_the_directories_beside_them(short_path: Path) -> None:
    for name in ("a", "a.b", "a/x", ".~tmp~/huai", "a/.~tmp~"):
        (short_path / name).mkdir(parents=True)
    for name in ("z", "a/z", "a/x/f", "a.b/f", "B", "a-", ".~tmp~/f", "a/.~tmp~/f"):
        (short_path / name).touch()
    (short_path / "a" / "l").symlink_to("/")
    expected = [b"a", b"a/x", b"a/l", b"a/z", b"a/x/f", b"a.b", b"B", b"a-", b"z", b"a.b/f"]
    assert paths(short_path) == expected


def test_a_file_named_like_the_staging_folder_is_seen(short_path: Path) -> None:
    (short_path / ".~tmp~").touch()
    assert paths(short_path) == [b".~tmp~"]


def steps_in_unreadable_directories(folder: Path) -> None:
    (folder / "list").mkdir()
    (folder / "list" / "f").touch()
    (folder / "list").chmod(0o400)
    (folder / "none").mkdir(mode=0)
    expected: list[Entry] = [*NOTHING, directory(b"list"), directory(b"none"), file(b"none/below")]
    with View(folder) as view:
        strange, matched = list(compared(view, NOTHING)), list(compared(view, expected))
    for findings in (strange, matched):
        silent = [(each.path, each.directory) for each in findings if isinstance(each, Unreadable)]
        assert silent == [(b"list/f", False), (b"none", True)]
    assert [each.path for each in strange if isinstance(each, Extraneous)] == [b"list", b"none"]
    assert [each.expected.path for each in matched if isinstance(each, Match)] == [
        b"",
        b"list",
        b"none",
    ]
    assert not any(isinstance(each, Missing) for each in matched)


def test_unreadable_directories_are_reported(short_path: Path) -> None:
    run_unprivileged(steps_in_unreadable_directories, short_path)
