"""A disk that fails at any system call ends a program with the code of file errors."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from huai_program.disk_hints import DISK_HINTS
from huai_program.ending import conclude
from huai_program.locking import locked
from huai_schema.errors import ExitCode


def _end_with(code: int) -> int:
    def run() -> int:
        raise OSError(code, os.strerror(code), "/srv/file")

    return conclude("huai", run, as_json=False)


@pytest.mark.parametrize("code", DISK_HINTS)
def test_errors_of_a_disk_are_errors_of_files(
    code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _end_with(code) == ExitCode.FILE_IO
    hint = f"huai: /srv/file: {os.strerror(code)}\n  {DISK_HINTS[code]}\n"
    assert capsys.readouterr().err == hint


def test_other_errors_keep_their_traceback() -> None:
    with pytest.raises(OSError, match="/srv/file"):
        _end_with(errno.EBADF)


def test_a_lock_is_released_on_a_disk_that_became_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_handle: int, _size: int) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    path = tmp_path / "lock"
    with locked(path):
        monkeypatch.setattr(os, "ftruncate", refuse)
    with locked(path):
        pass


@pytest.mark.parametrize("ending", ["0", "1 / 0"])
def test_a_signal_after_the_end_ends_the_process_without_a_word(ending: str) -> None:
    """A signal right before the exit was once shown as a traceback."""
    program = f"""if True:
        import os, signal, sys
        from huai_program.ending import conclude
        run = lambda: {ending}
        values = dict(usage_errors=(ZeroDivisionError,), as_json=False)
        code = conclude("huai", run, **values)
        os.kill(os.getpid(), signal.SIGTERM)
    """
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert ended.returncode == 128 + signal.SIGTERM
    assert b"Traceback" not in ended.stderr
