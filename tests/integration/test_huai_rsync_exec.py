"""When the real rsync runs instead of huai, and that no change is lost by it."""

import os
import signal
import time
from pathlib import Path

import msgspec
import pytest

from huai_client.huai_rsync.exec_rsync import HIDE
from huai_client.state import handovers
from huai_client.state.paths import module_places
from huai_program.locking import locked
from huai_schema.codec.announcement import FILE_NAME
from tests.support.redirecting import contents
from tests.support.rsync_calls import (
    FTPSYNC,
    FTPSYNC_SECOND,
    Mirror,
    RecordedRsync,
    mirror,
    program,
    run,
)
from tests.support.upstream import ENVIRONMENT, SECONDS, Site, assert_equal

FIRST_STAGE = (
    *("--exclude=*.diff/Index", "--exclude=Packages*", "--exclude=Sources*", "--exclude=Release*"),
    *("--exclude=InRelease", "--include=i18n/by-hash", "--exclude=i18n/*", "--exclude=ls-lR*"),
)
"""The rules with which two-stage mirrors leave out the indices at first."""
PLAIN = ("-aH", "--delete")
WHOLE = (*FTPSYNC, *FTPSYNC_SECOND)
EXPLAIN = {"HUAI_RSYNC_EXPLAIN": "yes"}


@pytest.fixture
def pair(place: Site, tmp_path: Path) -> Mirror:
    """A mirror of a Debian-like tree, with empty trees of its own."""
    pair = mirror(place, tmp_path)
    pair.up.many(b"pool", 5)
    pair.up.put(b"dists/stable/Release", b"one")
    pair.up.put(b"dists/stable/main/Packages", b"pool/0")
    pair.up.commit()
    return pair


@pytest.fixture
def synced(pair: Mirror) -> Mirror:
    """The same, brought up to date by both programs."""
    ended, _ = pair.call_both(*PLAIN)
    assert ended.err == ""
    return pair


def update(pair: Mirror) -> None:
    """A new package, and the index that names it."""
    pair.up.put(b"pool/new", b"content")
    pair.up.put(b"dists/stable/main/Packages", b"pool/0 pool/new")
    pair.up.put(b"dists/stable/Release", b"another")
    pair.up.at(b"pool/1").unlink()
    pair.up.commit()


@pytest.fixture
def recorded(tmp_path: Path) -> RecordedRsync:
    return RecordedRsync(tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        "-aH --delete --checksum",
        "-aH --delete --chmod=D755,F600",
        "-aH --delete --an-option-of-tomorrow",
        "-aH --delete --exclude=pool/1",
        "-rtH --delete",
        *(["-aH --delete --no-o"] if os.geteuid() == 0 else []),  # owners are for root
    ],
)
def test_unknown_calls_are_passed_on_to_rsync(
    pair: Mirror, recorded: RecordedRsync, options: str
) -> None:
    words = options.split()
    ended = pair.call(*words, environment=recorded.environment)
    assert ended.code == pair.real(*words).code
    assert recorded.calls == [[HIDE, *words, pair.source, f"{pair.down.dest}/"]]
    assert "the real rsync runs: " in ended.err
    pair.assert_equal()
    assert not pair.down.state_file.exists()


def test_other_sources_and_places_are_left_to_rsync(
    pair: Mirror, tmp_path: Path, recorded: RecordedRsync
) -> None:
    environment = {**recorded.environment, "HUAI_CLIENT_ROOT": str(pair.down.root)}
    elsewhere = tmp_path / "elsewhere"
    calls = [
        ["-aH", "--delete", pair.source, f"{elsewhere}/"],
        ["-a", f"{pair.up.tree}/pool", str(elsewhere)],
        ["--version"],
        ["-aH", "--delete", f"{pair.source}pool/", f"{elsewhere}/"],
    ]
    for arguments in calls:
        ended = run(pair.program, *arguments, environment=environment)
        assert (ended.code, ended.err) == (0, "")
    announcement = [f"{pair.source}pool/{FILE_NAME}"]
    passed_on = [call for call in recorded.calls if call[-2:-1] != announcement]
    assert passed_on == [call if call == ["--version"] else [HIDE, *call] for call in calls]
    assert run(pair.program, "--oops", environment=environment).code == 1


def test_another_source_for_the_same_tree_is_not_mistaken(synced: Mirror) -> None:
    settings = {"HUAI_CLIENT_ROOT": str(synced.down.root)}
    other = f"{synced.source}pool/"
    ended = run(synced.program, *PLAIN, other, f"{synced.down.dest}/", environment=settings)
    assert ended.code == 0
    assert "is not one of the module's content URLs" in ended.err
    assert sorted(os.listdir(synced.down.dest)) == [str(number) for number in range(5)]
    # The next sync knows of the changes that rsync made there, by whichever name it runs.
    assert synced.down.sync("--delete-extraneous").code == 0
    assert_equal(synced.up, synced.down)


def test_rsync_runs_if_the_upstream_cannot_be_asked(pair: Mirror) -> None:
    pair.down.configure(url="http://127.0.0.1:9")
    ended = pair.call(*PLAIN, environment={"HUAI_RSYNC_FALLBACK": "no"})
    assert ended.code == 10
    assert "rsync error: error in socket IO (code 10)" in ended.err
    assert not os.listdir(pair.down.dest)
    ended, _ = pair.call_both(*PLAIN)
    assert "the real rsync runs: http://127.0.0.1:9" in ended.err
    pair.assert_equal()


def test_after_rsync_the_whole_tree_is_compared_again(synced: Mirror, place: Site) -> None:
    """Changes that rsync took from a tree in the middle of an update must not stay."""
    away = synced.up.at(b"pool/2").rename(synced.up.tree.parent / f"{synced.up.name}-away")
    synced.down.configure(url="http://127.0.0.1:9")
    assert synced.call(*PLAIN).code == 0
    assert not (synced.down.dest / "pool/2").exists()
    away.rename(synced.up.at(b"pool/2"))
    synced.down.configure(url=place.url)
    # No snapshot ever lacked the file: only looking at the tree can tell.
    ended = synced.call(*PLAIN)
    assert (ended.code, ended.err) == (0, "")
    assert (synced.down.dest / "pool/2").exists()
    assert synced.down.verify("--content").code == 0


def test_both_stages_are_undone_as_one(pair: Mirror) -> None:
    pair.down.configure(trash="7d")
    assert pair.call(*PLAIN).code == 0
    before = contents(pair.down.dest)
    update(pair)
    for stage in ((*FTPSYNC, *FIRST_STAGE), WHOLE):
        assert pair.call(*stage).err == ""
    assert contents(pair.down.dest) != before
    undone = pair.down.run("undo", pair.down.name)
    assert undone.code == 0, undone
    after = contents(pair.down.dest)
    assert {path: text for path, text in after.items() if ".~tmp~" not in path} == before


def test_a_dry_first_stage_shows_its_part(synced: Mirror) -> None:
    update(synced)
    synced.up.put(b"pool/3", b"changed")
    synced.up.commit()
    files, real = [
        sorted(line for line in ended.out.splitlines() if line[1] == "f")
        for ended in synced.call_both("-aHi", "-n", *FIRST_STAGE)
    ]
    assert files == real != []


def test_a_cut_first_stage_is_finished_by_the_second(synced: Mirror) -> None:
    codes = []
    for number in range(3):
        synced.up.many(b"pool/more %d" % number, 40, size=20_000)
        update(synced)
        synced.up.put(b"pool/1", b"again")
        process = synced.spawn(*FTPSYNC, *FIRST_STAGE)
        time.sleep(0.15 * number)  # the first is cut for certain
        process.kill()
        process.communicate(timeout=SECONDS)
        codes.append(process.returncode)
    assert -signal.SIGKILL in codes
    update(synced)
    ended, _ = synced.call_both(*PLAIN)
    assert ended.err == ""
    synced.assert_equal()


def test_changes_that_need_a_deletion_are_left_to_rsync(synced: Mirror) -> None:
    """A folder that was renamed: both are there until a call deletes."""
    synced.up.at(b"pool").rename(synced.up.at(b"moved"))
    synced.up.commit()
    for options in (("-aH",), PLAIN):
        synced.call_both(*options)
        synced.assert_equal()
    assert synced.call(*PLAIN).err == ""


def test_calls_that_never_delete_are_rsyncs(pair: Mirror) -> None:
    assert "no call with --delete has completed yet" in pair.call("-aH", environment=EXPLAIN).err
    assert pair.call(*PLAIN).code == 0
    messages = []
    for number in range(10):
        pair.up.put(b"pool/new %d" % number, b"content")
        pair.up.commit()
        messages.append(pair.call("-aH", environment=EXPLAIN).err)
        assert (pair.down.dest / f"pool/new {number}").exists()
    assert messages[0] == ""
    assert "too many calls since the last one with --delete" in messages[-1]
    assert pair.call(*PLAIN).err == ""
    assert_equal(pair.up, pair.down)


def test_the_filter_of_the_module_may_stand_in_the_call(pair: Mirror) -> None:
    pair.down.configure(filter=("- /pool/1", "- Packages*"))
    options = ("-aH", "--delete", "--exclude=/pool/1", "--filter=- Packages*")
    for step in (lambda _: None, update):
        step(pair)
        ended, _ = pair.call_both(*options)
        assert ended.err == ""
        pair.assert_equal()
    assert pair.down.state.applied
    assert "the real rsync runs" in pair.call(*PLAIN).err


def test_status_shows_calls_that_are_left_to_rsync_until_one_is_not(pair: Mirror) -> None:
    """As those of a module that was added without the rules of the call."""

    def print_status() -> str:
        return pair.down.run("status").out

    assert "real rsync" not in print_status()
    for _ in range(2):
        assert "the filter rules are not those" in pair.call(*PLAIN, "--exclude=/x").err
    assert "huai-rsync left 2 calls to the real rsync since " in print_status()
    assert "the filter rules are not those of the module" in print_status()
    assert "left 2 calls to the real rsync" in pair.down.run("doctor", pair.down.name).out
    assert pair.call(*PLAIN).code == 0
    assert "real rsync" not in print_status()


def test_the_first_call_of_a_day_that_is_left_to_rsync_is_reported(pair: Mirror) -> None:
    stage = ["-rlptgoH"]
    assert pair.call(*stage, "--quiet").err == ""
    path = module_places(pair.down.root, pair.down.name).handovers
    before = handovers.load(path)
    assert before is not None
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(before, told=1)))
    assert "no call with --delete" in pair.call(*stage).err
    assert pair.call(*stage).err == ""


def test_too_many_deletions_are_refused_with_rsyncs_code(synced: Mirror) -> None:
    update(synced)
    ended = synced.call(*PLAIN, "--max-delete=0")
    assert ended.code == 25
    assert "(code 25)" in ended.err
    assert (synced.down.dest / "pool/1").exists()
    assert synced.call(*PLAIN, "--max-delete=1").code == 0
    assert not (synced.down.dest / "pool/1").exists()


def test_a_running_sync_is_not_disturbed(synced: Mirror) -> None:
    with locked(module_places(synced.down.root, synced.down.name).lock):
        ended = synced.call(*PLAIN)
    assert ended.code == 11
    assert "another run holds the lock" in ended.err


def test_content_that_vanished_ends_as_with_rsync(synced: Mirror) -> None:
    update(synced)
    synced.up.at(b"pool/new").unlink()
    ended = synced.call(*PLAIN)
    assert ended.code == 24
    assert "(code 24)" in ended.err
    assert (synced.down.dest / "dists/stable/Release").read_bytes() == b"one"


def test_a_missing_destination_is_made_by_rsync(pair: Mirror) -> None:
    pair.down.dest.rmdir()
    assert pair.call(*PLAIN).code == 0
    assert pair.call(*PLAIN).err == ""
    assert_equal(pair.up, pair.down)


@pytest.mark.parametrize("wrapped", [False, True])
def test_it_never_calls_itself(pair: Mirror, tmp_path: Path, wrapped: bool) -> None:
    """In place of rsync on PATH, directly or behind a script, huai's own rsync is the real one."""
    folder = tmp_path / "first"
    folder.mkdir()
    if wrapped:
        script = folder / "rsync"
        script.write_text(f'#!/bin/sh\nexec {pair.program} "$@"\n')
        script.chmod(0o755)
    else:
        (folder / "rsync").symlink_to(program(folder))
    settings = {
        "PATH": f"{folder}{os.pathsep}{ENVIRONMENT['PATH']}",
        "HUAI_CLIENT_ROOT": str(pair.down.root),
    }
    target = (pair.source, f"{pair.down.dest}/")
    for options in (PLAIN, ("-a",), PLAIN):
        ended = run(folder / "rsync", *options, *target, environment=settings)
        assert ended.code == 0, ended
    assert_equal(pair.up, pair.down)


def test_without_any_rsync_it_says_so(pair: Mirror, tmp_path: Path) -> None:
    ended = run(pair.program, "-a", "a", "b", environment={"PATH": str(tmp_path)})
    assert ended.code == 14
    assert "rsync is missing on PATH" in ended.err


def test_own_files_of_a_mirror_are_protected_as_the_module_says(pair: Mirror) -> None:
    """As ftpsync does with its trace and its marks."""
    pair.down.configure(protect=("/project/trace/here", "/Archive-Update-in-Progress-here"))
    trace = pair.down.dest / "project/trace/here"
    trace.parent.mkdir(parents=True)
    trace.write_text("trace")
    protected = "--filter=protect /project/trace/here"
    for step in (lambda _: None, update):
        step(pair)
        ended = pair.call(*WHOLE, protected, "--exclude=/Archive-Update-in-Progress-here")
        assert ended.code == 0
        assert "the real rsync runs" not in ended.err
        assert trace.read_text() == "trace"
    assert (pair.down.dest / "pool/new").exists()


def test_a_tree_that_is_held_after_an_undo_is_held_for_rsync_too(pair: Mirror) -> None:
    pair.down.configure(trash="7d", max_age="1d")
    assert pair.call(*PLAIN).code == 0
    update(pair)
    assert pair.call(*PLAIN).code == 0
    assert pair.down.run("undo", pair.down.name).code == 0
    ended = pair.call(*PLAIN)
    assert ended.code == 0
    assert "held since an undo" in ended.err
    assert (pair.down.dest / "dists/stable/Release").read_bytes() == b"one"


def test_metadata_beyond_max_age_give_way_to_rsync(synced: Mirror) -> None:
    synced.down.configure(max_age="1s")
    time.sleep(2.1)  # ages count in whole seconds
    synced.up.put(b"pool/not committed", b"yet")
    for _ in range(2):
        ended = synced.call(*PLAIN)
        assert (ended.code, "more than max_age" in ended.err) == (0, True)
        assert (synced.down.dest / "pool/not committed").exists()


def test_an_upstream_puts_nothing_into_the_staging_area(pair: Mirror, tmp_path: Path) -> None:
    """Nor does the rule that sees to it keep anything in DEST from being deleted."""
    area = ".~tmp~/huai/patches"
    (pair.up.tree / area).mkdir(parents=True)
    (pair.up.tree / area / "planted").write_bytes(b"planted")
    for deletes in ("--delete", "--delete-excluded"):
        copy = tmp_path / deletes
        (copy / area).mkdir(parents=True)
        call = ("-a", deletes, f"{pair.up.tree}/", f"{copy}/")
        ended = run(pair.program, *call, environment={"HUAI_CLIENT_ROOT": str(pair.down.root)})
        assert (ended.code, ended.err) == (0, "")
        assert [*copy.rglob("planted")] == []
        assert not (copy / area).exists()
        assert (copy / "pool/1").is_file()
