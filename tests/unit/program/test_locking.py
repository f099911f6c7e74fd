"""The lock admits one run at a time, even if an earlier one was killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from huai_program.locking import LockedError, holder, locked
from tests.support.committing import SECONDS

HOLD = """
import sys
from pathlib import Path
from huai_program.locking import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def start_holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=SECONDS)


def test_a_second_run_is_refused_and_told_by_whom(path: Path) -> None:
    process = start_holder(path)
    try:
        with pytest.raises(LockedError, match=f"process {process.pid}") as caught, locked(path):
            pass
        assert caught.value.exit_code == 43
        assert holder(path) == process.pid
    finally:
        ended(process)


def test_a_killed_holder_holds_nothing(path: Path) -> None:
    process = start_holder(path)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=SECONDS)
    assert path.read_text().strip() == str(process.pid)
    assert holder(path) is None
    with locked(path):
        assert holder(path) == os.getpid()
    assert holder(path) is None


def test_a_lock_file_that_was_deleted_and_made_anew_is_the_one_that_counts(path: Path) -> None:
    process = start_holder(path)
    try:
        path.unlink()
        with locked(path), pytest.raises(LockedError), locked(path):
            pass
    finally:
        ended(process)


def test_a_symlink_is_not_followed(path: Path) -> None:
    path.symlink_to(path.with_name("target"))
    with pytest.raises(OSError, match="symbolic"), locked(path):
        pass
    assert not path.with_name("target").exists()


def test_nonsense_in_the_file_is_nobody(path: Path) -> None:
    for content in (b"", b"nonsense", b"-1", b"99999999999999999999", b"\0\0", b"\xff\xfe"):
        path.write_bytes(content)
        assert holder(path) is None
