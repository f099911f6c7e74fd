"""A large file that is changed in place, and a kill or a power cut in the middle of that.

The next run makes the new version of it, or it still is the old one: never a mix of both.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import msgspec
import pytest

from huai_client.config import load as client_config
from huai_client.staging import Journals, finish_patches
from huai_client.staging.journals import PatchState, hashed
from huai_schema.errors import ExitCode
from tests.fault.sampling import LONG, spread
from tests.fault.scenarios.patch import (
    NAME,
    NEW,
    OLD,
    changed_image,
    check,
    image,
    journals,
    journals_of,
)
from tests.fault.story import finish
from tests.support.crash_states import Moment, Recorder, State, crash_states, lay
from tests.support.reflinks import shares_blocks
from tests.support.system_calls import CHANGING, KILL, Call, Cut, supervise
from tests.support.upstream import Downstream, Pair, Site, refresh


@pytest.fixture(name="pair")
def upstream_and_downstream(place: Site) -> Iterator[Pair]:
    with changed_image(place) as pair:
        yield pair


def bind(folder: Path, state: State, dest: Path) -> None:
    """Let the journals name the files of `dest`, where `state` was laid, and not the former."""
    staged = os.fsdecode(b".~tmp~/huai/patches/" + hashed(NAME))
    former = state.paths()
    for path in folder.glob("*[0-9a-f]"):
        journal = Journals(folder, dest)._load(os.fsencode(path.name))
        assert journal is not None
        target, patch = former.get(os.fsdecode(NAME)), former.get(staged)
        if target == journal.inode and patch == journal.patch.inode:
            inode = (dest / os.fsdecode(NAME)).stat().st_ino
            patched = PatchState.of((dest / staged).stat())
            bound = msgspec.structs.replace(
                journal, dest=os.fsencode(dest), inode=inode, patch=patched
            )
            Journals(folder, dest).write(bound)


def sync(down: Downstream) -> int:
    return int(down.observed().exit_code)


class Record:
    """A sync, with the tree as it was before each of its changes."""

    def __init__(self, down: Downstream) -> None:
        self._count = Cut(0)
        self._numbers: list[int] = []
        self._journals: list[Moment] = []
        folder = journals_of(down)
        folder.mkdir(exist_ok=True)
        with Recorder(down.dest) as self._recorder, Recorder(folder) as self._beside:
            assert supervise(CHANGING, lambda: sync(down), self._before).result == 0
        self.moments = [*zip(self._recorder.moments, self._journals, strict=True)]

    def _before(self, call: Call) -> None:
        self._count(call)
        # First the journals, so that each is seen with what came to the disk before it.
        self._beside.before(call)
        self._recorder.before(call)
        new = len(self._recorder.moments) - len(self._numbers)
        self._numbers.extend([self._count.passed] * new)
        self._journals.extend([self._beside.moments[-1]] * new)

    def in_the_middle(self) -> Iterator[tuple[int, tuple[Moment, Moment]]]:
        """The moments at which there is a journal, with the number of the call that follows."""
        for number, moment in zip(self._numbers, self.moments, strict=True):
            if any(not path.endswith(".new") for path in moment[1].now.paths()):
                yield number, moment


@pytest.mark.slow
@pytest.mark.timeout(LONG)
def test_a_power_cut_at_any_moment(pair: Pair, tmp_path: Path) -> None:
    _, down = pair
    record = Record(down)
    met = 0
    laid, folder = tmp_path / "laid", tmp_path / "journals"
    middle = [moment for _, moment in record.in_the_middle()]
    for moment, beside in (*spread(record.moments), *spread(middle)):
        for state, written in product(crash_states(moment), crash_states(beside)):
            refresh(laid)
            lay(state, laid)
            refresh(folder)
            lay(written, folder)
            bind(folder, state, laid)
            met += check(laid, folder)
    assert met or shares_blocks(down.dest), "no moment was in the middle of it"
    assert image(down.dest) == NEW


@pytest.mark.slow
def test_a_disk_that_refuses_in_the_middle(pair: Pair) -> None:
    up, down = pair
    refused: list[str] = []

    def decide(call: Call) -> int | None:
        if call.name == "truncate" and not refused and journals(journals_of(down)):
            refused.append(call.name)
            return errno.ENOSPC
        return None

    ended = supervise(CHANGING, lambda: down.sync().code, decide)
    assert ended.result == (ExitCode.FILE_IO if refused else ExitCode.OK)
    assert refused or shares_blocks(down.dest)
    finish(down, up)
    assert image(down.dest) == NEW


def test_a_file_that_is_gone_is_left_alone(pair: Pair, tmp_path: Path) -> None:
    """A removal or a replacement by another process is not undone."""
    up, down = pair
    record = Record(down)
    laid = tmp_path / "laid"
    middle = [*record.in_the_middle()]
    if not middle:
        assert shares_blocks(down.dest)
        return
    (state, *_), (written, *_) = map(crash_states, middle[0][1])
    folder = tmp_path / "journals"
    place = laid / os.fsdecode(NAME)
    for stands in ("nothing", "symlink", "directory"):
        refresh(laid)
        lay(state, laid)
        refresh(folder)
        lay(written, folder)
        bind(folder, state, laid)
        place.unlink()
        if stands == "symlink":
            place.symlink_to(up.at(NAME))
        elif stands == "directory":
            place.mkdir()
        assert finish_patches(Journals(folder, laid)) == [os.fsdecode(NAME)]
        assert journals(folder) == 0
        assert up.at(NAME).read_bytes() == NEW


def test_a_file_that_another_program_changed_meanwhile_is_left_alone(pair: Pair) -> None:
    up, down = pair
    patch = down.dest / os.fsdecode(b".~tmp~/huai/patches/" + hashed(NAME))
    theirs: list[bytes] = []

    def decide(_call: Call) -> int | None:
        if patch.exists() and not theirs:
            theirs.append(b"theirs")
            (down.dest / os.fsdecode(NAME)).write_bytes(theirs[0])
        return None

    ended = supervise(CHANGING, lambda: down.sync().code, decide)
    assert ended.result == (ExitCode.PARTIAL if theirs else ExitCode.OK)
    assert theirs or shares_blocks(down.dest)
    assert image(down.dest) == (theirs[0] if theirs else NEW)
    finish(down, up)
    assert image(down.dest) == NEW


def kill_in_the_middle(down: Downstream) -> bool:
    """Kill a sync that has changed a part of the file; False: it is changed in no such way."""
    written: list[Call] = []

    def decide(call: Call) -> int | None:
        if call.name in ("copy", "write") and journals(journals_of(down)):
            written.append(call)
        return KILL if len(written) > 1 else None

    killed = supervise(CHANGING, lambda: sync(down), decide).killed
    assert killed or shares_blocks(down.dest)
    return killed


def stop(down: Downstream) -> None:
    """No address answers any more: the change is finished all the same."""
    url = client_config.load(down.root).module(down.name).url
    down.configure(url="http://127.0.0.1:1")
    assert down.sync().code == ExitCode.NETWORK
    assert (image(down.dest), journals(journals_of(down))) == (NEW, 0)
    down.configure(url=url)


def damage(down: Downstream) -> None:
    (journal,) = journals_of(down).glob("*[0-9a-f]")
    os.truncate(journal, journal.stat().st_size - 1)


def empty(down: Downstream) -> None:
    (journal,) = journals_of(down).glob("*[0-9a-f]")
    journal.unlink()
    os.mkfifo(journal)


def lose_the_patch(down: Downstream) -> None:
    shutil.rmtree(down.dest / ".~tmp~")


def link(down: Downstream) -> None:
    """As `cp -al` of the tree does: its copy keeps what it has."""
    copy = down.dest.parent / f"copy-{down.name}"
    copy.hardlink_to(down.dest / os.fsdecode(NAME))
    before = copy.read_bytes()
    assert "half changed in place, and is compared" in down.sync().err
    assert copy.read_bytes() == before


def replace(down: Downstream) -> None:
    place = down.dest / os.fsdecode(NAME)
    place.rename(down.dest.parent / f"kept-{down.name}")  # so that its number is not given again
    place.write_bytes(OLD)


@pytest.mark.parametrize("act", [stop, damage, empty, lose_the_patch, link, replace])
def test_a_file_that_a_kill_left_half_changed_is_made_whole(
    pair: Pair, act: Callable[[Downstream], None]
) -> None:
    _, down = pair
    if not kill_in_the_middle(down):
        return
    assert image(down.dest) not in (OLD, NEW)
    assert "1 file is half changed in place" in down.run("status").out
    act(down)
    done = down.sync()
    assert done.code == 0
    reported = "was half changed in place, and is compared" in done.err
    assert reported == (act not in (stop, link))
    assert image(down.dest) == NEW
    assert down.verify("--content").code == 0
    assert "half changed" not in down.run("status").out


def test_what_only_looks_leaves_a_half_changed_file_alone(pair: Pair) -> None:
    _, down = pair
    if not kill_in_the_middle(down):
        return
    mix, folder = image(down.dest), journals_of(down)
    for command in (["plan"], ["undo", "--dry-run"], ["verify", "--content"], ["diff"], ["doctor"]):
        down.run(command[0], down.name, *command[1:])
        assert (image(down.dest), journals(folder)) == (mix, 1), command


def test_a_module_that_is_removed_leaves_no_half_changed_file(pair: Pair) -> None:
    _, down = pair
    if not kill_in_the_middle(down):
        return
    assert down.run("remove", down.name).code == 0
    assert image(down.dest) == NEW
