"""Every system call of a reuse may fail or be the last: nothing but right content is ready."""

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from blake3 import blake3

from huai_client.diff.reuse.value import Reuse
from huai_client.transfer import Outcome
from huai_client.transfer.local import LocalContent, ReusePolicy
from huai_client.transfer.staging import Arrival, Staging
from huai_client.tree import StorageError, Tree
from huai_schema.entries import File
from tests.support.local_trees import T0, at, content, file
from tests.support.reflinks import shares_blocks
from tests.support.staged import incoming, ready
from tests.support.system_calls import CHANGING, KILL, Call, from_on, never, supervise
from tests.support.system_calls import at as at_step

SPARSE = bytes(20_000) + b"its end"
MOVED, COPIED, COMES = file(b"moved", 3000), file(b"copied", 3000), file(b"new/comes", 100)
HOLES = file(b"holes", len(SPARSE))._replace(digest=blake3(SPARSE).digest())
WANTED = [
    MOVED._replace(path=at(b"new/moved")),
    COPIED._replace(path=at(b"new/copied")),
    COPIED._replace(path=at(b"new/again"), mtime=5),
    COMES,
    COMES._replace(path=at(b"new/twin")),
    HOLES._replace(path=at(b"new/deep/holes")),
]
REUSES = {
    WANTED[0].path: Reuse(MOVED.path, T0, names=1),
    WANTED[1].path: Reuse(COPIED.path, T0),
    WANTED[2].path: Reuse(COPIED.path, T0, sure=False),
    WANTED[4].path: Reuse(COMES.path, T0, twin=True),
    WANTED[5].path: Reuse(HOLES.path, T0),
}
ORIGIN = dict(zip(WANTED, (MOVED, COPIED, COPIED, COMES, COMES, HOLES), strict=True))
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
REFUSED = (errno.EIO, errno.EACCES, errno.EPERM, errno.EMLINK, errno.EXDEV)


class Ground:
    """A tree and its staging area, as often as needed."""

    def __init__(self, folder: Path) -> None:
        self.dest = folder / "dest"
        self.threads = 1
        """With one, the steps always come in the same order."""

    def reset(self) -> None:
        shutil.rmtree(self.dest, ignore_errors=True)
        self.dest.mkdir()
        for each in (MOVED, COPIED, HOLES):
            path = self.dest / os.fsdecode(each.path)
            with path.open("wb") as target:
                data = held(each)
                begin = len(data) - len(data.lstrip(b"\0"))
                target.seek(begin)
                target.write(data[begin:])
            path.chmod(each.mode)
            os.utime(path, ns=(T0, T0))

    def under(self, decide: Callable[[Call], int | None]) -> tuple[list[Call], object]:
        """Bring everything in a child whose system calls `decide` answers, then once more."""
        self.reset()
        before = self._sources()
        with self.opened() as staging, Tree(self.dest) as tree:
            outcome = supervise(CHANGING, lambda: brought(tree, staging, self.threads), decide)
            prove_ready(staging)
        with self.opened() as staging, Tree(self.dest) as tree:
            staging.prune(WANTED)
            staging.recover(WANTED)
            assert brought(tree, staging) == ""
            assert all(staging.ready(each) for each in WANTED)
            prove_ready(staging)
        assert self._sources() == before
        return outcome.calls, "killed" if outcome.killed else outcome.result

    def _sources(self) -> list[object]:
        moved, copied = (self.dest / name for name in ("moved", "copied"))
        found: list[object] = [copied.stat().st_ctime_ns, copied.stat().st_nlink]
        for path in (moved, copied):
            status = path.stat()
            found += [path.read_bytes(), status.st_mode, status.st_mtime_ns, status.st_ino]
        return found

    def opened(self) -> Staging:
        return Staging(self.dest / ".~tmp~" / "huai")


def held(each: File) -> bytes:
    """What a file of the tree, or of the upstream, holds."""
    return SPARSE if each == HOLES else content(each.path, each.size)


def brought(tree: Tree, staging: Staging, threads: int = 1) -> str:
    """Bring everything; the word is that of the error that ended it, or what did not come."""

    def transfer(files: Sequence[File]) -> Outcome:
        absent = [each for each in files if not staging.ready(each)]
        missing: list[File] = []
        for each in absent:
            try:
                run = staging.incoming.begin(())
                target = incoming(staging, run) / os.fsdecode(each.path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(held(ORIGIN[each]))
                os.utime(target, ns=(each.mtime, each.mtime))
                if staging.incoming.accept([each], run) != [Arrival.ARRIVED]:
                    missing.append(each)
            except OSError:
                missing.append(each)
        return Outcome([each for each in files if each not in missing], missing, [], 0)

    try:
        policy = ReusePolicy(1 << 62, hardlink=False, threads=threads)
        with LocalContent(tree, staging, policy) as local:
            taken = local.take(WANTED, REUSES)
            outcome = Outcome(taken.here, [], [], 0) + transfer(taken.absent)
            local.copy_twins(taken.twins, WANTED, REUSES)
            outcome += transfer(taken.twins)
    except StorageError as error:
        return error.message
    assert {*outcome.arrived, *outcome.missing} == {*WANTED}
    assert all(staging.ready(each) for each in outcome.arrived)
    return "missing" if outcome.missing else ""


def prove_ready(staging: Staging) -> None:
    for each in WANTED:
        if staging.ready(each):
            found = ready(staging, each).read_bytes()
            assert blake3(found).digest() == each.digest, each


@pytest.fixture
def ground(short_path: Path) -> Ground:
    return Ground(short_path)


def steps_of(ground: Ground) -> list[Call]:
    calls, result = ground.under(never)
    assert result == ""
    holes = set() if shares_blocks(ground.dest) else {"truncate"}
    assert {call.name for call in calls} == {"clone", "link", "mkdir", "times", "write"} | holes
    return calls


def test_a_kill_at_any_operation(ground: Ground) -> None:
    for call in steps_of(ground):
        _, result = ground.under(at_step(call.step, KILL))
        assert result == "killed", call


def test_a_kill_while_several_copy(ground: Ground) -> None:
    ground.threads = 3
    for call in steps_of(ground):
        _, result = ground.under(at_step(call.step, KILL))
        # Which of them makes a directory first is another matter every time.
        assert result in {"killed", ""}, call


@pytest.mark.parametrize("number", NO_ROOM)
def test_no_room_from_any_operation_on(ground: Ground, number: int) -> None:
    for call in steps_of(ground):
        _, result = ground.under(from_on(call.step, number))
        # A link that is refused is no more than a reason to copy, which is refused too.
        assert result == "missing" or os.strerror(number) in str(result), call


@pytest.mark.parametrize("number", REFUSED)
def test_what_is_refused_is_transferred(ground: Ground, number: int) -> None:
    """Any one operation; those of the transfer itself are its own matter."""
    came = 0
    for call in steps_of(ground):
        _, result = ground.under(at_step(call.step, number))
        came += result == ""
        assert result in {"", "missing"}, call
    assert came > len(REUSES)
