"""New directories that are published at once."""

import errno
import os
import stat
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from huai_client.diff.candidate import Move
from huai_client.plan.operations import Plan, Stage
from huai_client.plan.withhold import Withholding
from huai_client.publish.executor import execute
from huai_client.publish.report import Report
from huai_client.publish.whole import whole_directories
from huai_client.tree import Places, Tree
from huai_native import _native
from huai_schema.entries import Directory, Entry, File
from tests.support.comparing import verify
from tests.support.local_trees import (
    ArrivedFiles,
    at,
    directory,
    file,
    in_order,
    linked,
    plan_for,
    symlink,
)
from tests.support.system_calls import CHANGING, Call, never, supervise

DEFAULT_ACL = "system.posix_acl_default"
NOBODY = (1 << 32) - 1
"""Marks an entry of an ACL without a name."""
LINKED: list[Entry] = [
    linked(b"new/links/hard", file(b"new/in/f")),
    symlink(b"new/in/soft", b"../top"),
    symlink(b"new/links/soft", b"nowhere"),
]
NEW: list[Entry] = in_order(
    [
        directory(b""),
        directory(b"new", mode=0o555),
        directory(b"new/empty", mode=0o2555),
        directory(b"new/in", mtime=5),
        file(b"new/in/f"),
        file(b"new/in/g", mode=0o4444),
        file(b"new/top"),
    ]
)


def plan_of(entries: Iterable[Entry], stages: int = 1) -> Plan:
    """Return a plan for `entries`; a file whose name begins with a digit is in that stage."""
    fetches: list[list[File]] = [[] for _ in range(stages)]
    directories = []
    for entry in entries:
        if isinstance(entry, Directory):
            directories.append(entry)
        elif isinstance(entry, File):
            digit = entry.path.rpartition(b"/")[2][:1]
            fetches[int(digit) if digit.isdigit() else 0].append(entry)
    make = [each.path for each in directories if each.path]
    by_number = [Stage(str(number), files) for number, files in enumerate(fetches)]
    return Plan([], make, [], by_number, [], directories[::-1])


def lies(files: Sequence[File]) -> Places:
    arrived = _native.Arrived()
    arrived.add(files, 1)
    return Places(arrived, 7, 8, {})


def paths(plan: Plan, **options: Iterable[bytes]) -> list[list[bytes]]:
    volatile = [at(path) for path in options.get("volatile", ())]
    by_stage = whole_directories(plan, lies, volatile)
    return [[whole.directory.path for whole in stage] for stage in by_stage]


def test_the_outermost_is_taken_with_all_below_it() -> None:
    plan = plan_of(NEW)
    [[publication]] = whole_directories(plan, lies)
    assert publication.directory.folder == 7
    assert publication.directory.name == b"1/new"
    assert publication.make == [b"new", b"new/empty", b"new/in"]
    places = chain.from_iterable(publication.files)
    brought = {plan.stages[0].fetches[place].path for place in places}
    assert brought == {b"new/top", b"new/in/f", b"new/in/g"}
    pairs = zip(*publication.directory.directories, strict=True)
    settled = [(entry.path, names, done) for entry, (names, done) in pairs]
    # A directory that its owner may not write to is settled last, and so is the renamed one.
    assert settled == [(b"new/in", 2, True), (b"new/empty", 0, False), (b"new", 3, False)]


def test_directories_of_several_stages_are_made_by_themselves() -> None:
    entries: list[Entry] = [
        *(directory(path) for path in (b"r", b"r/a", b"r/b", b"r/c")),
        *(file(path) for path in (b"r/a/0", b"r/b/1", b"r/c/0", b"r/c/1")),
    ]
    assert paths(plan_of(entries, stages=2)) == [[b"r/a"], [b"r/b"]]


def test_what_else_the_plan_has_below_one_keeps_it_from_being_whole() -> None:
    plan = plan_of(NEW)
    [stage] = plan.stages
    link = linked(b"new/in/l", file(b"f"))
    for other in (
        replace(plan, stages=[replace(stage, links=[link])]),
        replace(plan, moves=[Move(at(b"old"), at(b"new/in/moved"))]),
        replace(plan, directories=[each for each in plan.directories if each.path != b"new/in"]),
    ):
        assert paths(other) == [[]]
    later = Stage("1", symlinks=[symlink(b"new/in/s")])
    assert paths(replace(plan, stages=[stage, later])) == [[], []]
    assert paths(plan, volatile=[b"new/in/f"]) == [[]]
    assert paths(plan, volatile=[b"new/top"]) == [[b"new/in"]]


def test_hardlinks_come_along_with_what_they_are_of() -> None:
    plan = plan_of(NEW)
    [stage] = plan.stages
    for leader, tops in (
        (b"new/in/f", [b"new"]),
        (b"new/top", [b"new"]),
        (b"new/empty/f", [b"new"]),
        (b"newer/f", []),
        (b"f", []),
    ):
        link = linked(b"new/in/l", file(leader))
        assert paths(replace(plan, stages=[replace(stage, links=[link])])) == [tops], leader
    # A directory above one with links elsewhere is not whole, but others below it are.
    entries: list[Entry] = [
        *(directory(path) for path in (b"r", b"r/a", b"r/b")),
        *(file(path) for path in (b"r/a/0", b"r/b/0", b"r/1")),
    ]
    plan = plan_of(entries, stages=2)
    links = [linked(b"r/a/l", file(b"r/a/0")), linked(b"r/b/l", file(b"r/a/0"))]
    plan.stages[0].links.extend(links)
    [[publication], _] = whole_directories(plan, lies)
    assert publication.directory.path == b"r/a"
    assert publication.directory.links == links[:1]


def test_files_of_other_places_join_but_directories_do_not() -> None:
    def elsewhere(files: Sequence[File]) -> Places:
        arrived = _native.Arrived()
        arrived.add([each for each in files if each.path != b"new/in/g"], 1)
        arrived.add([each for each in files if each.path == b"new/top"], 2)
        names = {n: b"key" for n, each in enumerate(files) if each.path == b"new/in/g"}
        return Places(arrived, 7, 8, names)

    [wholes] = whole_directories(plan_of(NEW), elsewhere)
    assert [whole.directory.path for whole in wholes] == [b"new/in"]
    assert wholes[0].directory.other_files == [(8, b"key", b"new/in/g")]
    assert wholes[0].directory.directories[1] == [(1, False)]


# ------------------------------------------------------------ execution


def run(dest: Path, entries: list[Entry], content: ArrivedFiles) -> Report:
    with Tree(dest) as tree:
        plan = plan_for(tree, entries)
        for item in plan.stages[0].fetches:
            content.path(item)
        report = execute(plan, tree, content, lambda *_: None)
        assert report.problems == ()
        assert list(verify(tree, entries, content=True)) == []
    return report


def names_of(dest: Path, content: ArrivedFiles) -> list[str]:
    """Return the calls for `NEW` that change names."""

    def work() -> None:
        run(dest, NEW, content)

    changing = [name for name in CHANGING if name in {"rename", "mkdir", "link", "unlink"}]
    with Tree(dest) as tree:
        for item in plan_for(tree, NEW).stages[0].fetches:
            content.path(item)
    return [call.name for call in supervise(changing, work, never).calls]


def test_one_rename_publishes_a_directory(short_path: Path) -> None:
    assert names_of(short_path, ArrivedFiles(short_path)) == [
        "mkdir",
        "rename",
    ]  # the empty one is made
    assert list((short_path / ".~tmp~/huai/incoming/1").iterdir()) == []


def test_links_are_made_before_it_has_its_name(short_path: Path) -> None:
    content, entries = ArrivedFiles(short_path), in_order([*NEW, *LINKED, directory(b"new/links")])
    exists: list[bool] = []
    top = short_path / "new"

    def look(call: Call) -> None:
        if call.name in {"link", "symlink"}:
            exists.append(top.exists())

    with Tree(short_path) as tree:
        for item in plan_for(tree, entries).stages[0].fetches:
            content.path(item)
    supervise(CHANGING, lambda: bool(run(short_path, entries, content)), look)
    assert exists == [False] * 3


def test_a_file_of_another_run_joins_first(short_path: Path) -> None:
    content = ArrivedFiles(short_path, elsewhere=[b"new/in/g"])
    assert names_of(short_path, content) == ["mkdir", "rename", "rename"]


def test_all_steps_are_told_and_counted(short_path: Path) -> None:
    report = run(short_path, NEW, ArrivedFiles(short_path))
    assert (report.counts.made, report.counts.published) == (3, 3)
    assert [each.changes for each in report.published] == [3]


@pytest.mark.parametrize("kind", ["symlink", "file"])
def test_no_symlink_stands_for_a_directory(short_path: Path, kind: str) -> None:
    outside = short_path / ".~tmp~/outside"
    outside.mkdir(parents=True)
    place = short_path / ".~tmp~/huai/incoming/1/new/empty"
    place.parent.mkdir(parents=True)
    if kind == "symlink":
        place.symlink_to(outside)
    else:
        place.touch()
    before = outside.stat()
    run(short_path, NEW, ArrivedFiles(short_path))
    assert (short_path / "new/empty").is_dir()
    assert stat.S_IMODE(outside.stat().st_mode) == stat.S_IMODE(before.st_mode)


def test_a_directory_that_appeared_meanwhile_is_filled(short_path: Path) -> None:
    content = ArrivedFiles(short_path, elsewhere=[b"new/in/g"])
    with Tree(short_path) as tree:
        plan = plan_for(tree, NEW)
        for item in plan.stages[0].fetches:
            content.path(item)
        (short_path / "new/in").mkdir(parents=True)
        report = execute(plan, tree, content, lambda *_: None)
        assert report.problems == ()
        assert list(verify(tree, NEW, content=True)) == []
    assert report.counts.published == 3


def hand_down(directory: Path) -> bytes:
    """Give `directory` a default ACL; empty if this file system has none."""
    user, mask = (0x02, 7, 65534), (0x10, 7, NOBODY)
    entries = [(0x01, 7, NOBODY), user, (0x04, 5, NOBODY), mask, (0x20, 5, NOBODY)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(directory, DEFAULT_ACL, acl)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
    return handed_down(directory)


def handed_down(directory: Path) -> bytes:
    try:
        return os.getxattr(directory, DEFAULT_ACL)
    except OSError as error:
        if error.errno not in {errno.ENODATA, errno.ENOTSUP}:
            raise
        return b""


@pytest.mark.parametrize("where", ["", "top"])
def test_what_another_default_acl_would_come_with_is_not_whole(
    short_path: Path, where: str
) -> None:
    top = short_path / "top"
    top.mkdir()
    acl = hand_down(short_path / where)  # with "", of the staging area alone
    below = [
        file(b"top/" + entry.path, entry.size)
        if isinstance(entry, File)
        else entry._replace(path=at(b"top/" + entry.path))
        for entry in NEW[1:]
    ]
    run(short_path, [NEW[0], directory(b"top"), *below], ArrivedFiles(short_path))
    acls = [handed_down(top / name) for name in ("new", "new/in", "new/empty")]
    assert acls == [handed_down(top)] * 3
    staged = short_path / ".~tmp~/huai/incoming/1/top/new/in"
    assert staged.is_dir() == bool(acl)  # its files alone have left


def test_where_the_staging_area_has_the_same_default_acl_a_directory_comes_whole(
    short_path: Path,
) -> None:
    acl = hand_down(short_path)
    run(short_path, NEW, ArrivedFiles(short_path))
    assert [handed_down(short_path / name) for name in ("new", "new/in")] == [acl] * 2
    assert not (short_path / ".~tmp~/huai/incoming/1/new").exists()


def test_nothing_is_whole_once_something_waits(short_path: Path) -> None:
    content, waiting = ArrivedFiles(short_path), Withholding()
    waiting.fail(at(b"other"))
    with Tree(short_path) as tree:
        plan = plan_for(tree, NEW)
        for item in plan.stages[0].fetches:
            content.path(item)
        report = execute(plan, tree, content, lambda *_: None, waiting)
    assert (report.counts.made, report.counts.published) == (3, 3)
    assert (short_path / ".~tmp~/huai/incoming/1/new/in").is_dir()
