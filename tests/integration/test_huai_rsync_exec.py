"""When the real rsync runs instead of huai, and that nothing is lost by it."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from huai_client.huai_rsync.exec_rsync import HIDE
from huai_client.state import handovers
from huai_client.state.paths import module_places
from huai_program.locking import locked
from huai_schema.codec.announcement import FILE_NAME
from tests.support.rsync_calls import (
    FTPSYNC,
    FTPSYNC_SECOND,
    Mirror,
    closing,
    mirror,
    picture,
    program,
    run,
)
from tests.support.upstream import ENVIRONMENT, SECONDS, Site, assert_equal

FIRST_STAGE = (
    *("--exclude=*.diff/Index", "--exclude=Packages*", "--exclude=Sources*", "--exclude=Release*"),
    *("--exclude=InRelease", "--include=i18n/by-hash", "--exclude=i18n/*", "--exclude=ls-lR*"),
)
"""What two-stage mirrors leave out at first."""
PLAIN = ("-aH", "--delete")
EXPLAIN = {"HUAI_RSYNC_EXPLAIN": "yes"}


@pytest.fixture
def pair(place: Site, tmp_path: Path) -> Mirror:
    """A mirror of a Debian-like tree, with empty trees of its own."""
    found = mirror(place, tmp_path)
    found.up.many(b"pool", 5)
    found.up.put(b"dists/stable/Release", b"one")
    found.up.put(b"dists/stable/main/Packages", b"pool/0")
    found.up.commit()
    return found


def update(found: Mirror) -> None:
    """A new package, and the index that names it."""
    found.up.put(b"pool/new", b"content")
    found.up.put(b"dists/stable/main/Packages", b"pool/0 pool/new")
    found.up.put(b"dists/stable/Release", b"another")
    found.up.at(b"pool/1").unlink()
    found.up.commit()


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[], list[list[str]]]:
    """A rsync on PATH that tells how it was called; those calls so far."""
    folder = tmp_path / "bin"
    folder.mkdir()
    log = tmp_path / "calls"
    real = shutil.which("rsync")
    wrapper = folder / "rsync"
    wrapper.write_text(f'#!/bin/sh\n(printf "%s\\t" "$@"; echo) >>{log}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)

    def calls() -> list[list[str]]:
        found = log.read_text().splitlines() if log.exists() else []
        return [line.split("\t")[:-1] for line in found]

    return calls


def before(tmp_path: Path) -> dict[str, str]:
    """The environment in which that one comes first."""
    return {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{ENVIRONMENT['PATH']}"}


@pytest.mark.parametrize(
    "options",
    [
        ("-aH", "--delete", "--checksum"),
        ("-aH", "--delete", "--chmod=D755,F600"),
        ("-aH", "--delete", "--an-option-of-tomorrow"),
        ("-aH", "--delete", "--exclude=pool/1"),
        ("-rtH", "--delete"),
        ("-aH", "--delete", "--no-o"),
    ],
    ids=" ".join,
)
def test_what_is_not_understood_goes_to_rsync_as_it_is(
    pair: Mirror,
    tmp_path: Path,
    recorded: Callable[[], list[list[str]]],
    options: tuple[str, ...],
) -> None:
    if options[-1] == "--no-o" and os.geteuid() != 0:
        pytest.skip("owners are for root")
    ended = pair.call(*options, environment=before(tmp_path))
    real = pair.real(*options)
    assert ended.code == real.code
    assert recorded() == [[HIDE, *options, pair.source, f"{pair.down.dest}/"]]
    assert "the real rsync runs: " in ended.err
    assert picture(pair.down.dest) == picture(pair.twin)
    assert not pair.down.state_file.exists()


def test_other_sources_and_places_are_no_business_of_huai(
    pair: Mirror, tmp_path: Path, recorded: Callable[[], list[list[str]]]
) -> None:
    environment = {**before(tmp_path), "HUAI_CLIENT_ROOT": str(pair.down.root)}
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
    asked = [call for call in recorded() if call[-2:-1] != [f"{pair.source}pool/{FILE_NAME}"]]
    assert asked == [call if call == ["--version"] else [HIDE, *call] for call in calls]
    assert run(pair.program, "--oops", environment=environment).code == 1


def test_another_source_for_the_same_tree_is_not_mistaken(pair: Mirror) -> None:
    assert pair.call(*PLAIN).code == 0
    settings = {"HUAI_CLIENT_ROOT": str(pair.down.root)}
    other = f"{pair.source}pool/"
    ended = run(pair.program, *PLAIN, other, f"{pair.down.dest}/", environment=settings)
    assert ended.code == 0
    assert "is not one of its content URLs" in ended.err
    assert sorted(os.listdir(pair.down.dest)) == [str(number) for number in range(5)]
    # What rsync did there is no secret to the next sync, by whichever name it runs.
    assert pair.down.sync("--delete-extraneous").code == 0
    assert_equal(pair.up, pair.down)


def test_rsync_runs_if_the_upstream_cannot_be_asked(pair: Mirror) -> None:
    assert pair.call(*PLAIN).code == 0
    pair.down.configure(url="http://127.0.0.1:9")
    update(pair)
    ended = pair.call(*PLAIN)
    assert ended.code == 0
    assert "the real rsync runs: http://127.0.0.1:9" in ended.err
    pair.real(*PLAIN)
    assert picture(pair.down.dest) == picture(pair.twin)


def test_that_can_be_forbidden(pair: Mirror) -> None:
    pair.down.configure(url="http://127.0.0.1:9")
    ended = pair.call(*PLAIN, environment={"HUAI_RSYNC_FALLBACK": "no"})
    assert ended.code == 10
    assert "rsync error: error in socket IO (code 10)" in ended.err
    assert not os.listdir(pair.down.dest)


def test_after_rsync_the_whole_tree_is_compared_again(pair: Mirror, place: Site) -> None:
    """What rsync took from a tree in the middle of an update must not stay."""
    assert pair.call(*PLAIN).code == 0
    away = pair.up.at(b"pool/2").rename(pair.up.tree.parent / f"{pair.up.name}-away")
    pair.down.configure(url="http://127.0.0.1:9")
    assert pair.call(*PLAIN).code == 0
    assert not (pair.down.dest / "pool/2").exists()
    away.rename(pair.up.at(b"pool/2"))
    pair.down.configure(url=place.url)
    # No snapshot ever lacked the file: only looking at the tree can tell.
    ended = pair.call(*PLAIN)
    assert (ended.code, ended.err) == (0, "")
    assert (pair.down.dest / "pool/2").exists()
    assert pair.down.verify("--content").code == 0


def test_two_stages_end_in_the_same_tree(
    pair: Mirror, tmp_path: Path, recorded: Callable[[], list[list[str]]]
) -> None:
    whole = (*FTPSYNC, *FTPSYNC_SECOND)
    assert (pair.call(*whole).code, pair.real(*whole).code) == (0, 0)
    for step in (update, lambda _: None, update_again):
        step(pair)
        for stage in ((*FTPSYNC, *FIRST_STAGE), whole):
            ended, real = pair.call(*stage, environment=before(tmp_path)), pair.real(*stage)
            assert (ended.code, ended.err, real.code) == (0, "", 0)
            assert closing(ended.out) == closing(real.out)
            assert contents(pair.down.dest) == contents(pair.twin)
        assert picture(pair.down.dest) == picture(pair.twin)
    # rsync fetched content, and was asked for nothing else.
    assert all("--files-from=-" in call or call == ["--version"] for call in recorded())


def contents(top: Path) -> dict[str, bytes]:
    """What the files hold."""
    return {
        str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()
    }


def update_again(found: Mirror) -> None:
    """More, with new folders, links and something touched."""
    found.up.many(b"pool/deep/new", 3)
    os.link(found.up.at(b"pool/deep/new/0"), found.up.at(b"pool/deep/linked"))
    found.up.at(b"pool/latest").symlink_to("deep/new")
    os.utime(found.up.at(b"pool/3"), ns=(10**18, 10**18))
    found.up.put(b"dists/stable/main/Packages", b"pool/0 pool/deep/new/0")
    found.up.put(b"dists/other/Sources", b"new")
    found.up.at(b"pool/new").unlink()
    found.up.commit()


def test_both_stages_are_undone_as_one(pair: Mirror) -> None:
    pair.down.configure(trash="7d")
    assert pair.call(*PLAIN).code == 0
    was = contents(pair.down.dest)
    update(pair)
    for stage in ((*FTPSYNC, *FIRST_STAGE), (*FTPSYNC, *FTPSYNC_SECOND)):
        assert pair.call(*stage).err == ""
    assert contents(pair.down.dest) != was
    undone = pair.down.run("undo", pair.down.name)
    assert undone.code == 0, undone
    now = contents(pair.down.dest)
    assert {path: text for path, text in now.items() if ".~tmp~" not in path} == was


def test_a_dry_first_stage_shows_its_part(pair: Mirror) -> None:
    assert (pair.call(*PLAIN).code, pair.real(*PLAIN).code) == (0, 0)
    update(pair)
    pair.up.put(b"pool/3", b"changed")
    pair.up.commit()
    options = ("-aHi", "-n", *FIRST_STAGE)
    files = [
        [line for line in found.out.splitlines() if line[1] == "f"]
        for found in (pair.call(*options), pair.real(*options))
    ]
    assert sorted(files[0]) == sorted(files[1]) != []


def test_a_cut_first_stage_is_finished_by_the_second(pair: Mirror) -> None:
    assert (pair.call(*PLAIN).code, pair.real(*PLAIN).code) == (0, 0)
    killed = []
    for number in range(3):
        pair.up.many(b"pool/more %d" % number, 40, size=20_000)
        update(pair)
        pair.up.put(b"pool/1", b"again")
        process = pair.spawn(*FTPSYNC, *FIRST_STAGE)
        time.sleep(0.3 + 0.1 * number)
        process.kill()
        process.communicate(timeout=SECONDS)
        killed.append(process.returncode)
    assert -signal.SIGKILL in killed
    update(pair)
    ended, real = pair.call(*PLAIN), pair.real(*PLAIN)
    assert (ended.code, ended.err, real.code) == (0, "", 0)
    assert picture(pair.down.dest) == picture(pair.twin)


def test_what_would_have_to_make_way_is_left_to_rsync(pair: Mirror) -> None:
    """A folder that was renamed: both are there until something deletes."""
    assert (pair.call(*PLAIN).code, pair.real(*PLAIN).code) == (0, 0)
    pair.up.at(b"pool").rename(pair.up.at(b"moved"))
    pair.up.commit()
    for options in (("-aH",), PLAIN):
        ended, real = pair.call(*options), pair.real(*options)
        assert (ended.code, real.code) == (0, 0)
        assert picture(pair.down.dest) == picture(pair.twin)
    assert pair.call(*PLAIN).err == ""


def test_calls_that_never_delete_are_rsyncs(pair: Mirror) -> None:
    assert "no call that deletes has ended yet" in pair.call("-aH", environment=EXPLAIN).err
    assert pair.call(*PLAIN).code == 0
    told = []
    for number in range(10):
        pair.up.put(b"pool/new %d" % number, b"content")
        pair.up.commit()
        told.append(pair.call("-aH", environment=EXPLAIN).err)
        assert (pair.down.dest / f"pool/new {number}").exists()
    assert told[0] == ""
    assert "as many calls before" in told[-1]
    assert pair.call(*PLAIN).err == ""
    assert_equal(pair.up, pair.down)


def test_the_filter_of_the_module_may_stand_in_the_call(pair: Mirror) -> None:
    pair.down.configure(filter=("- /pool/1", "- Packages*"))
    options = ("-aH", "--delete", "--exclude=/pool/1", "--filter=- Packages*")
    for step in (lambda _: None, update):
        step(pair)
        ended, real = pair.call(*options), pair.real(*options)
        assert (ended.code, ended.err, real.code) == (0, "", 0)
        assert picture(pair.down.dest) == picture(pair.twin)
    assert pair.down.state.applied
    assert "the real rsync runs" in pair.call(*PLAIN).err


def test_calls_that_are_left_to_rsync_are_told_until_one_is_not(pair: Mirror) -> None:
    """As those of a module that was added without the rules of the call."""

    def status() -> str:
        return pair.down.run("status").out

    assert "real rsync" not in status()
    for _ in range(2):
        assert "its filter rules are not those" in pair.call(*PLAIN, "--exclude=/x").err
    assert "huai-rsync left 2 calls to the real rsync since " in status()
    assert "its filter rules are not those of the module" in status()
    assert "left 2 calls to the real rsync" in pair.down.run("doctor", pair.down.name).out
    assert pair.call(*PLAIN).code == 0
    assert "real rsync" not in status()


def test_the_first_call_of_a_day_that_is_left_to_rsync_is_told(pair: Mirror) -> None:
    stage = ["-rlptgoH"]
    assert pair.call(*stage, "--quiet").err == ""
    begin_another_day(pair)
    assert "without --delete" in pair.call(*stage).err
    assert pair.call(*stage).err == ""


def begin_another_day(pair: Mirror) -> None:
    path = module_places(pair.down.root, pair.down.name).handovers
    before = handovers.load(path)
    assert before is not None
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(before, told=1)))


def test_too_many_deletions_are_refused_with_rsyncs_code(pair: Mirror) -> None:
    assert pair.call(*PLAIN).code == 0
    update(pair)
    ended = pair.call(*PLAIN, "--max-delete=0")
    assert ended.code == 25
    assert "(code 25)" in ended.err
    assert (pair.down.dest / "pool/1").exists()
    assert pair.call(*PLAIN, "--max-delete=1").code == 0
    assert not (pair.down.dest / "pool/1").exists()


def test_a_running_sync_is_not_disturbed(pair: Mirror) -> None:
    assert pair.call(*PLAIN).code == 0
    with locked(module_places(pair.down.root, pair.down.name).lock):
        ended = pair.call(*PLAIN)
    assert ended.code == 11
    assert "another run holds the lock" in ended.err


def test_content_that_vanished_ends_as_with_rsync(pair: Mirror) -> None:
    assert pair.call(*PLAIN).code == 0
    update(pair)
    pair.up.at(b"pool/new").unlink()
    ended = pair.call(*PLAIN)
    assert ended.code == 24
    assert "(code 24)" in ended.err
    assert (pair.down.dest / "dists/stable/Release").read_bytes() == b"one"


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
    assert "there is no rsync on PATH" in ended.err


def test_own_files_of_a_mirror_are_protected_as_the_module_says(pair: Mirror) -> None:
    """As ftpsync does with its trace and its marks."""
    pair.down.configure(protect=("/project/trace/here", "/Archive-Update-in-Progress-here"))
    trace = pair.down.dest / "project/trace/here"
    trace.parent.mkdir(parents=True)
    trace.write_text("trace")
    options = (
        *(*FTPSYNC, *FTPSYNC_SECOND, "--filter=protect /project/trace/here"),
        "--exclude=/Archive-Update-in-Progress-here",
    )
    for step in (lambda _: None, update):
        step(pair)
        ended = pair.call(*options)
        assert ended.code == 0
        assert "the real rsync runs" not in ended.err
        assert trace.read_text() == "trace"
    assert (pair.down.dest / "pool/new").exists()


def test_what_an_undo_holds_is_held_for_rsync_too(pair: Mirror) -> None:
    pair.down.configure(trash="7d", max_age="1d")
    assert pair.call(*PLAIN).code == 0
    update(pair)
    assert pair.call(*PLAIN).code == 0
    assert pair.down.run("undo", pair.down.name).code == 0
    ended = pair.call(*PLAIN)
    assert ended.code == 0
    assert "held since an undo" in ended.err
    assert (pair.down.dest / "dists/stable/Release").read_bytes() == b"one"


def test_metadata_that_nobody_renews_give_way_to_rsync(pair: Mirror) -> None:
    assert pair.call(*PLAIN).code == 0
    pair.down.configure(max_age="1s")
    time.sleep(2.1)  # ages count in whole seconds
    pair.up.put(b"pool/not committed", b"yet")
    for _ in range(2):
        ended = pair.call(*PLAIN)
        assert (ended.code, "more than max_age" in ended.err) == (0, True)
        assert (pair.down.dest / "pool/not committed").exists()


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
