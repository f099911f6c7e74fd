"""No configuration of a repository makes the server's git run a program."""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from huai_server.http.git.upload_pack import Call, Git
from huai_server.store.git_program import GitFailedError, run_git
from tests.support.http_fixtures import SECONDS, Repository, fetch_all, git
from tests.support.processes import interrupted_start

KEYS = (
    *("core.sshCommand", "core.gitProxy", "core.fsmonitor", "core.alternateRefsCommand"),
    *("core.pager", "core.editor", "core.askPass", "uploadpack.packObjectsHook"),
    *("gc.recentObjectsHook", "credential.helper", "gpg.program", "diff.external"),
)
URLS = ("ssh://localhost/x", "git://localhost/x", "ext::PROGRAM")


class Hostile(NamedTuple):
    """A repository that lacks an object."""

    path: Path
    head: str
    blob: str
    """The missing object."""


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """Make a program that leaves a file; return the file."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho run >> {tmp_path / 'mark'}\nexit 1\n")
    program.chmod(0o755)
    return tmp_path / "mark"


@pytest.fixture(params=URLS)
def hostile(tmp_path: Path, marks: Path, request: pytest.FixtureRequest) -> Hostile:
    """Make a partial clone that names the program wherever git's configuration can."""
    repository, program = Repository.create(tmp_path, "m"), marks.with_name("program")
    repository.commit(b"first", b"second")
    head, blob = repository.head(), git("-C", repository.path, "rev-parse", "main:1-0")
    (repository.path / "objects" / blob[:2] / blob[2:]).unlink()
    url = request.param.replace("PROGRAM", str(program))
    for key in KEYS:
        git("-C", repository.path, "config", key, str(program))
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "core.hooksPath": str(tmp_path / "hooks"),
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": url,
        "remote.origin.uploadpack": str(program),
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
    }.items():
        git("-C", repository.path, "config", key, value)
    (tmp_path / "hooks").mkdir()
    for name in ("pre-auto-gc", "post-index-change", "reference-transaction", "post-checkout"):
        (tmp_path / "hooks" / name).symlink_to(program)
    return Hostile(repository.path, head, blob)


def test_the_work_on_packs_runs_nothing_else(hostile: Hostile, marks: Path) -> None:
    object_ids = f"{hostile.blob}\n".encode()
    with pytest.raises(GitFailedError, match="pack-objects"):
        run_git(hostile.path, ["pack-objects", "--stdout"], stdin=object_ids, put=lambda _: None)
    assert not marks.exists()


def test_a_signal_during_the_start_ends_git(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path, "m")
    with interrupted_start():
        run_git(repository.path, ["cat-file", "--batch"], stdin=b"", put=lambda _: None)


def test_a_fetch_runs_nothing_else(hostile: Hostile, marks: Path) -> None:
    program = Git(SECONDS)
    for call, request in (
        (Call(hostile.path, 2, advert=True), b""),
        (Call(hostile.path, 2, advert=False), fetch_all(hostile.head)),
    ):
        run(program.command(call), program.environment(call), request)
    assert not marks.exists()


def test_the_mark_would_be_seen(hostile: Hostile, marks: Path) -> None:
    """Without the server's settings, git runs the program."""
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null"}
    options = ["-c", f"safe.directory={hostile.path}", f"--git-dir={hostile.path}"]
    run(["git", *options, "pack-objects", "--stdout"], environment, f"{hostile.blob}\n".encode())
    assert marks.exists()


def run(command: list[str], environment: dict[str, str], request: bytes) -> None:
    """Run it to its end, whatever that is."""
    subprocess.run(
        command,
        input=request,
        env=environment,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
