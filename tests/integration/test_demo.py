"""The demo: on a small tree, kept, interrupted; and its proofs, which have to be able to fail."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.demo.processes import DemoError, Processes
from tests.demo.proofs import git_ids_are_equal, rsync_finds_no_difference
from tests.demo.stage import MODULE, PROGRAMS, environment

TOP = Path(__file__).parents[2]
DEMO = [sys.executable, str(TOP / "tests" / "demo" / "demo.py")]
SMALL = ["--entries", "1500"]
SECONDS = 300
"""It starts some forty programs, one after the other."""


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DEMO, *arguments],
        cwd="/",
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=SECONDS,
        check=False,
    )


def folder_in(output: str) -> Path:
    found = re.search(r" in (/\S+/huai-demo-\w+)/mirror$", output, re.MULTILINE)
    assert found, output
    return Path(found[1])


def named_in_processes(folder: Path) -> list[str]:
    """The processes of which the command line or the environment names `folder`."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            texts = [(place / name).read_bytes() for name in ("cmdline", "environ")]
        except OSError:
            continue
        if any(os.fsencode(folder) in text for text in texts):
            found.append(place.name)
    return found


@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS)
def test_the_whole_way_leaves_nothing_behind() -> None:
    done = demo(*SMALL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("    proved: ") == 3
    assert re.search(r"^nothing new +[\d,]+ +0 ", done.stdout, re.MULTILINE)
    folder = folder_in(done.stdout)
    assert not folder.exists()
    assert named_in_processes(folder) == []


@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS)
def test_kept_it_goes_on_until_it_is_stopped() -> None:
    kept = demo(*SMALL, "--keep")
    assert kept.returncode == 0, kept.stdout + kept.stderr
    folder = folder_in(kept.stdout)
    try:
        assert named_in_processes(folder) != []
        url = re.search(r"curl (http://\S+)", kept.stdout)
        assert url
        with urllib.request.urlopen(url[1], timeout=10) as answer:  # noqa: S310 - our own server
            assert MODULE in json.dumps(json.load(answer))
    finally:
        stopped = demo("--stop")
    assert stopped.returncode == 0
    assert f"deleted {folder}\n" in stopped.stdout
    assert not folder.exists()
    assert named_in_processes(folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("words", ["A mirror: ", "$ huai-client sync"])
def test_interrupted_it_leaves_nothing_behind(words: str, number: signal.Signals) -> None:
    with subprocess.Popen([*DEMO, *SMALL], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        said = ""
        for line in process.stdout:
            said += line
            if line.startswith(words):
                break
        process.send_signal(number)
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said + rest
    folder = folder_in(said)
    assert not folder.exists()
    assert named_in_processes(folder) == []


def succeeds(proof: Callable[[], str]) -> bool:
    try:
        return bool(proof())
    except DemoError:
        return False


class Copies:
    """A mirror that is committed, and a copy of it."""

    def __init__(self, folder: Path, processes: Processes) -> None:
        self.mirror, self.copy = folder / "mirror", folder / "copy"
        self.processes = processes
        self.mirror.mkdir()
        (self.mirror / "file").write_text("content\n")
        server = PROGRAMS / "huai-server"
        processes.run(server, "add", MODULE, self.mirror, "--content-url", "rsync://h/m")
        processes.run(server, "commit", MODULE)
        processes.run("cp", "-a", self.mirror, self.copy)

    def proofs(self) -> tuple[bool, bool]:
        """Which of the proofs succeed."""
        return succeeds(
            lambda: rsync_finds_no_difference(self.mirror, self.copy, self.processes)
        ), succeeds(lambda: git_ids_are_equal(self.copy, "rsync://h/m", self.processes))


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    return Copies(tmp_path, Processes(tmp_path, environment(tmp_path)))


def test_the_proofs_hold_for_equal_trees(copies: Copies) -> None:
    assert copies.proofs() == (True, True)


def test_the_proofs_see_other_content_behind_equal_attributes(copies: Copies) -> None:
    file = copies.copy / "file"
    status = file.stat()
    file.write_text("CONTENT\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert copies.proofs() == (False, False)


def test_the_proofs_see_a_stranger(copies: Copies) -> None:
    (copies.copy / "stranger").touch()
    assert copies.proofs() == (False, False)


def test_the_proofs_see_another_mode(copies: Copies) -> None:
    (copies.copy / "file").chmod(0o600)
    assert copies.proofs() == (False, False)


def test_a_command_that_fails_ends_the_demo_with_its_words(tmp_path: Path) -> None:
    processes = Processes(tmp_path, environment(tmp_path))
    with pytest.raises(DemoError, match="exit code 2"):
        processes.run("sh", "-c", "echo words; exit 2")
    with pytest.raises(DemoError, match="words"):
        processes.run("sh", "-c", "echo words; exit 2")
