"""The quick starts of the README and the tutorial, done by a stranger: what they say, nothing else.

Only names of hosts, ports and folders are replaced.  The output that a page shows has to come, with
any numbers.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.processes import end_process
from tests.support.rsyncd import rsync_daemon

TOP = Path(__file__).parents[2]
README = TOP / "README.md"
TUTORIAL = TOP / "docs" / "TUTORIAL.md"
SECONDS = 100
PROGRAMS = Path(sys.executable).parent


class Step(NamedTuple):
    """A command of a page, and the lines that it shows below it."""

    command: str
    output: list[str]


def read_steps(page: Path, title: str) -> list[Step]:
    """Return the steps below a heading: a command follows `$`, and ends at two blanks and `#`."""
    below = page.read_text(encoding="utf-8").split(f"\n## {title}\n")[1]
    block = below.split("```\n")[1]
    steps: list[Step] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append(Step(line.removeprefix("$ ").partition("  #")[0].rstrip(), []))
        else:
            steps[-1].output.append(line)
    return steps


class Stranger:
    """Two hosts on one machine, with folders and ports in the place of those of the page."""

    def __init__(self, folder: Path, daemon: str) -> None:
        self.replacements = {
            "rsync://mirror.example": daemon,
            "/srv/": f"{folder}/srv/",
            "/var/lib/": f"{folder}/var/lib/",
            "--host 0.0.0.0": "--host 127.0.0.1 --port 0",
        }
        self.environment = {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
            "HUAI_ROOT": f"{folder}/var/lib/huai",
            "HUAI_CLIENT_ROOT": f"{folder}/var/lib/huai-client",
        }

    def local(self, text: str) -> str:
        for original, replacement in self.replacements.items():
            text = text.replace(original, replacement)
        return text

    def does(self, step: Step) -> None:
        """Run a command to its end."""
        done = subprocess.run(
            ["bash", "-c", self.local(step.command)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{step.command}: {done.stdout}"
        self.sees(step, done.stdout.splitlines())

    def sees(self, step: Step, output: list[str]) -> None:
        """Each line that the page shows came, in its order."""
        lines = iter(map(without_numbers, output))
        missing = [
            line for line in map(self.local, step.output) if without_numbers(line) not in lines
        ]
        assert missing == [], f"{step.command}: {output}"

    @contextmanager
    def keeps_running(self, step: Step) -> Iterator[None]:
        """Leave a server in the background; its port replaces that of the page from then on."""
        command = self.local(step.command.removesuffix(" &"))
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            env=self.environment,
            stderr=subprocess.STDOUT,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            self.sees(step, [line.rstrip("\n")])
            port = re.findall(r":(\d+)/", line)[0]
            self.replacements["http://mirror.example:8440"] = f"http://127.0.0.1:{port}"
            yield
        finally:
            end_process(process, SECONDS)
            if process.stdout is not None:
                process.stdout.close()


def without_numbers(line: str) -> str:
    return re.sub(r"\d[\d.,]*( [KMG]iB| B\b)?", "N", line)


def make_tree(tree: Path) -> None:
    """Packages, their index, and a link."""
    for number in range(1, 41):
        package = tree / "pool" / f"tool-{number % 4}" / f"tool_1.{number}.tar.gz"
        package.parent.mkdir(parents=True, exist_ok=True)
        package.write_bytes(os.urandom(number * 1000))
    (tree / "SHA256SUMS").write_text("of all\n")
    (tree / "latest").symlink_to("pool/tool-0")


def differences(tree: Path, copy: Path, *options: str) -> str:
    """Return what rsync would still do, contents compared."""
    compare = ["rsync", "-anc", "--delete", "--itemize-changes", *options, f"{tree}/", f"{copy}/"]
    return subprocess.run(
        compare, capture_output=True, text=True, timeout=SECONDS, check=True
    ).stdout


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Stranger]:
    """A stranger whose upstream has a tree and an rsync daemon."""
    tree = tmp_path / "srv" / "mirror" / "tools"
    make_tree(tree)
    with rsync_daemon({"tools": tree}) as daemon:
        yield Stranger(tmp_path, daemon)


@pytest.mark.timeout(600)  # nine programs start from nothing, one after the other
def test_a_stranger_mirrors_a_tree(stranger: Stranger, tmp_path: Path) -> None:
    tree, copy = (tmp_path / "srv" / each / "tools" for each in ("mirror", "copy"))
    add, commit, serve, commit_again = read_steps(README, "Quick start: upstream")
    stranger.does(add)
    stranger.does(commit)
    with stranger.keeps_running(serve):
        (tree / "pool/tool-1/tool_2.0.tar.gz").write_bytes(b"the update")
        stranger.does(commit_again)
        for step in read_steps(README, "Quick start: downstream"):
            stranger.does(step)
        assert differences(tree, copy) == ""


@pytest.mark.timeout(600)
def test_a_stranger_follows_the_tutorial(stranger: Stranger, tmp_path: Path) -> None:
    tree, copy = (tmp_path / "srv" / each / "tools" for each in ("mirror", "copy"))
    add, commit, serve = read_steps(TUTORIAL, "Make an upstream")
    stranger.does(add)
    stranger.does(commit)
    with stranger.keeps_running(serve):
        for title in ("Make a downstream", "Follow an update", "Undo a sync"):
            for step in read_steps(TUTORIAL, title):
                stranger.does(step)
            assert differences(tree, copy, "--exclude=.~tmp~/") == ""  # the trash
