"""Every system call of copying from a path may fail or be the last: what is ready is right."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from blake3 import blake3

from huai_client.modes import Kept
from huai_client.transfer import TransferOptions
from huai_client.transfer.staging import Staging
from huai_schema.entries import File
from huai_schema.errors import HuaiError
from tests.support.reflinks import shares_blocks
from tests.support.staged import ready
from tests.support.system_calls import CHANGING, KILL, Call, at, from_on, never, supervise
from tests.support.transfers import Downstream, described, put

T0 = 1_600_000_000_123_456_789
OPTIONS = TransferOptions(program="rsync-that-is-not-installed", streams=1, retries=0)
GROUP = 65534 if os.geteuid() == 0 else os.getegid()
FINISH = (lambda _: None, lambda _: GROUP), Kept
FULL = (errno.ENOSPC, errno.EIO)


class Ground:
    """A path, and a staging area as often as needed."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "source"
        self.dest = folder / "dest"
        contents = {b"a": b"1", b"d/b": os.urandom(300_000), b"d/e/c": b"3" * 5000, b"empty": b""}
        self.files = [put(self.source, name, held, mtime=T0) for name, held in contents.items()]
        with (self.source / "sparse").open("wb") as sparse:
            sparse.seek(1_000_000)
            sparse.write(b"its end")
        self.files.append(described(self.source, b"sparse"))
        self.files.append(described(self.source, b"d/b", digest=False)._replace(mode=0o777))

    def under(self, decide: Callable[[Call], int | None]) -> tuple[list[Call], object]:
        """Copy everything in a child whose system calls `decide` answers, then once more."""
        shutil.rmtree(self.dest, ignore_errors=True)
        self.dest.mkdir()
        with self.staging():
            pass
        outcome = supervise(CHANGING, self.copied, decide)
        self.copied()
        with self.staging() as staging:
            staging.recover(self.wanted)
            for file in self.wanted:
                assert blake3(ready(staging, file).read_bytes()).digest() == self.digest(file)
        return outcome.calls, "killed" if outcome.killed else outcome.result

    @property
    def wanted(self) -> list[File]:
        """Each path once; one has no digest."""
        return [each for each in self.files if each.path != b"d/b" or each.digest is None]

    def digest(self, file: File) -> bytes:
        """What its content has to be."""
        return blake3((self.source / os.fsdecode(file.path)).read_bytes()).digest()

    def copied(self) -> str:
        """One transfer; what ended it, or the paths that did not get all their attributes."""
        try:
            down = Downstream(self.dest, FINISH)
            outcome = down.fetch(self.wanted, str(self.source), OPTIONS)
        except HuaiError as error:
            return error.message
        assert outcome.arrived == self.wanted
        return "".join(os.fsdecode(each.path) for each in self.wanted if each not in down.finished)

    def staging(self) -> Staging:
        return Staging(self.dest / ".~tmp~" / "huai")


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def steps_of(ground: Ground) -> list[Call]:
    calls, result = ground.under(never)
    assert result == ""
    written = set() if shares_blocks(ground.source) else {"truncate", "write"}
    assert {"clone", "mkdir", "times"} | written <= {call.name for call in calls}
    return calls


def test_a_kill_at_any_operation(ground: Ground) -> None:
    for call in steps_of(ground):
        _, result = ground.under(at(call.step, KILL))
        assert result == "killed", call


@pytest.mark.parametrize("number", FULL)
def test_a_disk_that_takes_no_more(ground: Ground, number: int) -> None:
    for call in steps_of(ground):
        _, result = ground.under(from_on(call.step, number))
        assert os.strerror(number) in str(result), call


def test_attributes_that_cannot_be_set_are_left_to_publishing(ground: Ground) -> None:
    steps = steps_of(ground)
    area = 0o700  # of the staging area itself
    modes = [call for call in steps if call.name == "chmod" and call.arguments[1] != area]
    calls = [*modes, *(call for call in steps if call.name == "owner")]
    assert modes
    paths = {os.fsdecode(file.path) for file in ground.wanted}
    for call in calls:
        _, result = ground.under(at(call.step, errno.EPERM))
        assert result in paths, call
