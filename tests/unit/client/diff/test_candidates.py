"""The input of the planner from a comparison of the whole tree."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from huai_client.config.modes import DefaultMode, Modes, Reduced
from huai_client.diff.candidate import Candidate, TreeDiff
from huai_client.diff.candidates import UnreadableTreeError, diff_changes, diff_whole
from huai_client.diff.selection import Selection
from huai_client.filters import Rules
from huai_client.tree import Tree, View
from huai_schema.entries import Directory, Entry
from huai_schema.errors import FormatError
from huai_schema.paths import ROOT, RelPath
from tests.support.comparing import selection_of
from tests.support.local_trees import T0, directory, file, linked, symlink
from tests.support.unprivileged import run_unprivileged

TOP: list[Entry] = [Directory(ROOT, 0)]


def compare_whole(
    folder: Path | View,
    expected: Iterable[Entry],
    lines: Iterable[bytes] = (),
    modes: Modes = Modes.EXACT,
    *,
    delete_extraneous: bool = False,
) -> TreeDiff:
    if isinstance(folder, Path):
        with View(folder) as view:
            return compare_whole(view, expected, lines, modes, delete_extraneous=delete_extraneous)
    rules = Rules(Rules.parse(lines).rules, modes)
    selection = Selection(selection_of(expected).snapshot, rules)
    return diff_whole(folder, [], selection, delete_extraneous=delete_extraneous)


def by_path(diff: TreeDiff) -> dict[bytes, Candidate]:
    compared: dict[bytes, Candidate] = {
        each.path: each for each in diff.candidates if each.path != ROOT
    }
    assert len(compared) == sum(each.path != ROOT for each in diff.candidates)
    return compared


def write(path: Path, size: int = 10, mtime: int = T0) -> None:
    path.write_bytes(b"x" * size)
    os.utime(path, ns=(mtime, mtime))


def test_extraneous_paths_are_reported_or_deleted(short_path: Path) -> None:
    (short_path / "own").mkdir()
    for name in ("own/f", "mine"):
        write(short_path / name)
    paths = [b"own", b"mine", b"own/f"]
    undeleted = compare_whole(short_path, TOP)
    assert (by_path(undeleted), undeleted.extraneous) == ({}, paths)
    going = compare_whole(short_path, TOP, delete_extraneous=True)
    compared = by_path(going)
    assert [(path, each.expected) for path, each in compared.items()] == [
        (path, None) for path in paths
    ]
    assert all(each.present for each in compared.values())
    assert going.extraneous == []


@pytest.mark.parametrize(
    ("modes", "kind", "mode", "differs"),
    [
        (Modes.EXACT, int, 0o4775, True),
        (Modes.SAFE, Reduced, 0o775, True),
        (Modes.PLAIN, int, 0o644, False),
        (Modes.LOCAL, DefaultMode, 0o775, False),
    ],
)
def test_modes_that_a_policy_gives(
    short_path: Path, modes: Modes, kind: type[int], mode: int, *, differs: bool
) -> None:
    write(short_path / "here", 9)
    (short_path / "here").chmod(0o644)
    expected = [file(name, mode=0o4775) for name in (b"here", b"new")]
    compared = by_path(compare_whole(short_path, [*TOP, *expected], modes=modes))
    for candidate in compared.values():
        assert candidate.expected is not None
        assert type(candidate.expected.mode) is kind
        assert candidate.expected.mode == mode
        assert getattr(candidate.expected.mode, "stated", mode) == (
            0o4775 if kind is Reduced else mode
        )
    assert ("mode" in compared[b"here"].differing) == differs


class _Numbers:
    """Owners of this machine, which do not include the expected one."""

    def user(self, name: bytes) -> int:
        return {b"somebody": os.getuid() + 1}[name]

    def group(self, name: bytes) -> int:
        return {b"some": os.getgid()}[name]


def test_owners_by_number_and_shown_by_name(short_path: Path) -> None:
    write(short_path / "f")
    expected = file(b"f")._replace(owner=b"somebody", group=b"some")
    top = Directory(ROOT, 0)._replace(owner=b"somebody", group=b"some")
    with View(short_path) as view:
        view.owners = _Numbers()  # type: ignore[assignment]
        table = compare_whole(view, [top, expected]).candidates
        compared = next(each for each in table if each.path == b"f")
        names = view.names.user(os.getuid()), view.names.group(os.getgid())
    assert compared.differing == {"owner"}
    assert compared.have is not None
    assert (compared.have.owner, compared.have.group) == names
    assert compared.expected == expected


def steps_in_directories_that_are_opened_up(folder: Path) -> None:
    (folder / "list/none/deep").mkdir(parents=True)
    leader = file(b"list/f", mtime=0)
    for name in ("list/f", "list/none/deep/f"):
        (folder / name).touch()
    os.link(folder / "list/f", folder / "list/none/also")
    os.truncate(folder / "list/f", 10)
    (folder / "gone").mkdir()
    (folder / "gone" / "f").touch()
    for name in ("list/none/deep", "list/none", "list", "gone"):
        (folder / name).chmod({"list/none/deep": 0o600, "list": 0o400}.get(name, 0))
    expected = [*TOP, directory(b"list"), directory(b"list/none"), leader, file(b"list/new")]
    expected += [linked(b"list/none/also", leader), file(b"list/none/new"), file(b"z/f")]
    expected.append(directory(b"z"))
    with Tree(folder) as tree:
        diff = compare_whole(tree, expected)
    compared = by_path(diff)
    below = [b"list", b"list/f", b"list/new", b"list/none", b"list/none/also", b"list/none/new"]
    assert list(compared) == [*below, b"z", b"z/f"]
    missing = [path for path, each in compared.items() if not each.present]
    assert missing == [b"list/new", b"list/none/new", b"z", b"z/f"]
    assert "mode" in compared[b"list"].differing & compared[b"list/none"].differing
    assert not any("link" in each.differing for each in compared.values())
    assert diff.extraneous == [b"gone", b"gone/f", b"list/none/deep", b"list/none/deep/f"]
    assert (folder / "list").stat().st_mode & 0o7777 == 0o400


def test_whoever_writes_opens_up_closed_directories(short_path: Path) -> None:
    run_unprivileged(steps_in_directories_that_are_opened_up, short_path)


class Useless(Tree):
    """A tree on a file system that accepts modes and does not keep them."""

    def open_up(self, path: RelPath) -> bool:
        return path == b"closed"


def steps_in_a_directory_that_stays_closed(folder: Path) -> None:
    (folder / "closed").mkdir(mode=0)
    expected = [*TOP, directory(b"closed")]
    with View(folder) as view, pytest.raises(UnreadableTreeError, match=r"^closed: "):
        compare_whole(view, expected)

    with Useless(folder) as tree, pytest.raises(UnreadableTreeError, match=r"^closed: "):
        compare_whole(tree, expected)


def test_a_directory_that_stays_closed_is_an_error(short_path: Path) -> None:
    run_unprivileged(steps_in_a_directory_that_stays_closed, short_path)


def ends_with(tick: Callable[[], None], folder: Path) -> None:
    selection = selection_of([*TOP, *(file(b"%d" % number) for number in range(3))])
    with View(folder) as view:
        diff_whole(view, [], selection, delete_extraneous=False, tick=tick)


def test_a_tick_may_end_the_comparison(short_path: Path) -> None:
    def over() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        ends_with(over, short_path)


def entry_by_entry(view: View, expected: Selection) -> TreeDiff:
    return diff_whole(view, [], expected, delete_extraneous=False)


def since_a_snapshot(view: View, expected: Selection) -> TreeDiff:
    return diff_changes(view, [selection_of([*TOP, file(b"0")])], expected)


@pytest.mark.parametrize(
    "leader",
    [
        None,
        symlink(b"a"),
        directory(b"a"),
        file(b"a", size=11),
        file(b"a")._replace(digest=b"e" * 32),
        linked(b"a", file(b"0")),
    ],
)
@pytest.mark.parametrize("compare", [entry_by_entry, since_a_snapshot])
def test_a_hardlink_to_what_is_not_a_listed_file_of_its_group_is_refused(
    short_path: Path, leader: Entry | None, compare: Callable[[View, Selection], TreeDiff]
) -> None:
    """Its content would not be proved, although the file exists with the right attributes."""
    write(short_path / "a")
    link = linked(b"b", file(b"a"))._replace(digest=b"d" * 32)
    listed = [] if leader is None else [leader]
    expected = selection_of([*TOP, file(b"0"), *listed, link])
    refused = pytest.raises(FormatError, match=r"^b: a hardlink (to what|differs) .* a$")
    with View(short_path) as view, refused:
        compare(view, expected)


def test_a_hardlink_to_a_file_that_did_not_change_is_a_candidate_alone(short_path: Path) -> None:
    write(short_path / "a")
    link = linked(b"b", file(b"a"))
    with View(short_path) as view:
        past, expected = selection_of([*TOP, file(b"a")]), selection_of([*TOP, file(b"a"), link])
        diff = diff_changes(view, [past], expected)
    assert list(by_path(diff)) == [b"b"]
