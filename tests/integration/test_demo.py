"""The demo on a small tree: kept, interrupted; and its proofs, which have to be able to fail."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from contextlib import suppress
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
    match = re.search(r" in (/\S+/huai-demo-\w+)/mirror$", output, re.MULTILINE)
    assert match, output
    return Path(match[1])


def is_in_use(folder: Path) -> bool:
    """True if the command line or the environment of a process names `folder`."""
    texts = []
    for name in ("cmdline", "environ"):
        for path in Path("/proc").glob(f"[0-9]*/{name}"):
            with suppress(OSError):
                texts.append(path.read_bytes())
    return any(os.fsencode(folder) in text for text in texts)


def assert_deleted(folder: Path) -> None:
    assert not folder.exists()
    assert not is_in_use(folder)


@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS)
def test_with_keep_it_runs_until_it_is_stopped() -> None:
    done = demo(*SMALL, "--keep")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("    proved: ") == 3
    assert re.search(r"^nothing new +[\d,]+ +0 ", done.stdout, re.MULTILINE)
    folder = folder_in(done.stdout)
    try:
        assert is_in_use(folder)
        url = re.search(r"curl (http://\S+)", done.stdout)
        assert url
        with urllib.request.urlopen(url[1], timeout=10) as answer:  # noqa: S310 - our own server
            assert MODULE in json.dumps(json.load(answer))
    finally:
        stopped = demo("--stop")
    assert stopped.returncode == 0
    assert f"deleted {folder}\n" in stopped.stdout
    assert_deleted(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "number"), [("A mirror: ", signal.SIGINT), ("$ huai-client sync", signal.SIGTERM)]
)
def test_interrupted_it_leaves_nothing_behind(words: str, number: signal.Signals) -> None:
    with subprocess.Popen([*DEMO, *SMALL], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        output = ""
        for line in process.stdout:
            output += line
            if line.startswith(words):
                break
        process.send_signal(number)
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output + rest
    assert_deleted(folder_in(output))


def succeeds(proof: Callable[[], str]) -> bool:
    try:
        return bool(proof())
    except DemoError:
        return False


def change_content(copy: Path) -> None:
    """Write other content behind equal attributes."""
    file = copy / "file"
    status = file.stat()
    file.write_text("CONTENT\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda _: None,
    "content": change_content,
    "a stranger": lambda copy: (copy / "stranger").touch(),
    "a mode": lambda copy: (copy / "file").chmod(0o600),
}


@pytest.mark.parametrize("difference", CHANGES)
def test_the_proofs_see_every_difference(tmp_path: Path, difference: str) -> None:
    processes = Processes(tmp_path, environment(tmp_path))
    mirror, copy = tmp_path / "mirror", tmp_path / "copy"
    mirror.mkdir()
    (mirror / "file").write_text("content\n")
    server = PROGRAMS / "huai-server"
    processes.run(server, "add", MODULE, mirror, "--content-url", "rsync://h/m")
    processes.run(server, "commit", MODULE)
    processes.run("cp", "-a", mirror, copy)
    CHANGES[difference](copy)
    equal = difference == "nothing"
    assert succeeds(lambda: rsync_finds_no_difference(mirror, copy, processes)) is equal
    assert succeeds(lambda: git_ids_are_equal(copy, "rsync://h/m", processes)) is equal


def test_a_command_that_fails_ends_the_demo_with_its_words(tmp_path: Path) -> None:
    processes = Processes(tmp_path, environment(tmp_path))
    with pytest.raises(DemoError, match="exit code 2"):
        processes.run("sh", "-c", "echo words; exit 2")
    with pytest.raises(DemoError, match="words"):
        processes.run("sh", "-c", "echo words; exit 2")
