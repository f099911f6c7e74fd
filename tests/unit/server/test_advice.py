"""Hints of the server about refusals of the operating system."""

import errno
import os
from pathlib import Path

import pytest

from huai_schema.errors import HuaiError
from huai_schema.paths import RelPath
from huai_server.cli.console import Console
from huai_server.cli.report import show_problems
from huai_server.scan.types import Problem
from huai_server.state.errors import storage_errors
from huai_server.store.repository import Repository


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.ENOENT, "removed while the commit read it"),
        (errno.EMFILE, "allow more open files"),
        (errno.EIO, "the disk fails"),
        (errno.EACCES, "make it readable for the user that runs this command"),
        (errno.EINVAL, "check the file system"),
    ],
)
def test_a_path_that_could_not_be_read(
    code: int, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = Problem(RelPath(b"d/file"), os.strerror(code), "left out")
    show_problems(Console(as_json=False, quiet=False), "m", [problem])
    assert advice in capsys.readouterr().err.splitlines()[1]


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.EIO, "the disk fails"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EMFILE, "allow more open files"),
        (errno.ENOSPC, "make room on the file system of /state"),
        (errno.EACCES, "run it as the user that owns /state"),
    ],
)
def test_state_that_cannot_be_written(code: int, advice: str) -> None:
    with pytest.raises(HuaiError) as caught, storage_errors(Path("/state")):
        raise OSError(code, os.strerror(code))
    assert caught.value.hint.startswith(advice)


@pytest.mark.parametrize(
    ("code", "exit_code", "advice"),
    [
        (errno.EMFILE, 11, "allow more open files"),
        (errno.EACCES, 11, "run it as the user"),
        (errno.ENOENT, 50, "restore the repository"),
        (errno.EIO, 11, "the disk fails"),
    ],
)
def test_a_repository_that_cannot_be_opened(
    code: int, exit_code: int, advice: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_arguments: object, **_options: object) -> str:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(HuaiError) as caught:
        Repository(tmp_path).head()
    assert caught.value.exit_code == exit_code
    assert caught.value.hint.startswith(advice)
