"""hooks/post-sync, with the real program, as an upstream runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
HOOK = TOP / "hooks" / "post-sync"


class Upstream:
    """A tree and a state root, and the program as a file that HUAI_SERVER can name."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree"
        self.tree.mkdir()
        (self.tree / "file").write_text("content\n")
        self.program = folder / "the program"
        path = os.pathsep.join(str(TOP / side) for side in ("schema", "server", "client"))
        self.program.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path[:0] = {path.split(os.pathsep)!r}\n"
            "from huai_server.cli.main import main\nmain()\n"
        )
        self.program.chmod(0o755)
        self.environment = {
            "PATH": "/usr/bin:/bin",  # cron's
            "HUAI_ROOT": str(folder / "root"),
            "HUAI_SERVER": str(self.program),
            "HUAI_POST_SYNC_D": str(folder / "parts"),
        }
        self.parts = folder / "parts"
        self.parts.mkdir()
        self.ran = folder / "ran"

    def server(self, *arguments: str) -> str:
        return subprocess.run(
            [self.program, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout

    def hook(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [HOOK, *arguments],
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def part(self, name: str, code: int = 0, mode: int = 0o755) -> None:
        """Write a program that records its arguments and variables, and ends with `code`."""
        line = "$0 $1 $HUAI_MODULE $HUAI_SERIAL_BEFORE-$HUAI_SERIAL $HUAI_CHANGED $HUAI_EXIT_CODE"
        part = self.parts / name
        part.write_text(f'#!/bin/sh\necho "{line}" >>{self.ran}\nexit {code}\n')
        part.chmod(mode)

    def part_lines(self) -> list[str]:
        """Return the lines of the programs since the last call."""
        if not self.ran.exists():
            return []
        lines = self.ran.read_text().replace(f"{self.parts}/", "").splitlines()
        self.ran.unlink()
        return lines

    def serial(self) -> int | None:
        serial = json.loads(self.server("status", "--json", "m"))["serial"]
        assert serial is None or isinstance(serial, int)
        return serial


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    upstream = Upstream(tmp_path)
    upstream.server("add", "m", str(upstream.tree))
    return upstream


def test_commits_the_module_that_is_named(upstream: Upstream) -> None:
    done = upstream.hook("m")
    assert (done.returncode, done.stdout) == (0, "")
    assert "m: serial 1" in done.stderr
    assert upstream.serial() == 1
    # An argument wins over the environment.
    (upstream.tree / "file").write_text("more\n")
    assert upstream.hook("m", TUNASYNC_MIRROR_NAME="another").returncode == 0
    assert upstream.serial() == 2


def test_a_failed_update_of_tunasync_is_not_committed(upstream: Upstream) -> None:
    variables = {"TUNASYNC_MIRROR_NAME": "m", "TUNASYNC_JOB_EXIT_STATUS": "failure"}
    done = upstream.hook(**variables)
    assert done.returncode == 0
    assert "m: nothing is committed" in done.stderr
    assert "failure" in done.stderr
    assert upstream.serial() is None
    assert upstream.hook(**variables | {"TUNASYNC_JOB_EXIT_STATUS": "success"}).returncode == 0
    assert upstream.serial() == 1


def test_passes_options_and_the_exit_code_on(upstream: Upstream) -> None:
    (upstream.tree / "file").unlink()
    assert upstream.hook("m").returncode == 42
    assert upstream.hook("m", "--allow-empty").returncode == 0


def test_calls_that_fail(upstream: Upstream) -> None:
    for arguments, variables, code, words in [
        (["other"], {}, 45, "other"),
        (["--help"], {}, 45, "--help"),
        ([], {}, 1, "which module?"),
        (["m"], {"HUAI_SERVER": ""}, 51, "huai-server: program not found; set HUAI_SERVER to it"),
    ]:
        done = upstream.hook(*arguments, **variables)
        assert (done.returncode, words in done.stderr) == (code, True), done


def test_finds_the_program_on_the_path(upstream: Upstream) -> None:
    folder = upstream.program.parent / "bin"
    folder.mkdir()
    (folder / "huai-server").symlink_to(upstream.program)
    done = upstream.hook("m", HUAI_SERVER="", PATH=f"{folder}:/usr/bin:/bin")
    assert done.returncode == 0
    assert upstream.serial() == 1


def test_programs_of_the_folder_run_after_the_commit(upstream: Upstream) -> None:
    for name in ("20-last", "10-first"):
        upstream.part(name)
    upstream.part("10-first.dpkg-old")
    upstream.part("30-off", mode=0o644)
    (upstream.parts / "40-folder").mkdir()
    assert upstream.hook("m").returncode == 0
    assert upstream.part_lines() == ["10-first m m -1 1 0", "20-last m m -1 1 0"]
    assert upstream.hook("m").returncode == 0
    assert upstream.part_lines() == ["10-first m m 1-1 0 0", "20-last m m 1-1 0 0"]


def test_one_that_fails_keeps_neither_others_nor_the_commit_back(upstream: Upstream) -> None:
    upstream.part("10-fails", code=3)
    upstream.part("20-last")
    done = upstream.hook("m")
    assert done.returncode == 56
    assert "10-fails ended with 3" in done.stderr
    assert [line.split()[0] for line in upstream.part_lines()] == ["10-fails", "20-last"]
    assert upstream.serial() == 1


def test_none_runs_without_a_commit(upstream: Upstream) -> None:
    upstream.part("10-part")
    (upstream.tree / "file").unlink()
    assert upstream.hook("m").returncode == 42
    assert upstream.hook("m", TUNASYNC_JOB_EXIT_STATUS="failure").returncode == 0
    assert upstream.part_lines() == []
