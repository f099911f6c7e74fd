"""hooks/ssh-push, by the environment that sshd gives to a forced command, with the real client."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.processes import until
from tests.support.upstream import CLIENT, ENVIRONMENT, Downstream, Site, assert_equal

HOOK = Path(__file__).parents[2] / "hooks" / "ssh-push"


class Pushed:
    """A downstream and what an upstream's key may do there."""

    def __init__(self, down: Downstream, folder: Path) -> None:
        self.down = down
        self.folder = folder
        self.program = folder / "the client"
        words = " ".join(f"'{word}'" for word in CLIENT)
        self.program.write_text(
            f'#!/bin/sh\necho "$*" >> "{folder}/runs"\n'
            f'while [ -e "{folder}/wait" ]; do sleep 0.05; done\nexec {words} "$@"\n'
        )
        self.program.chmod(0o755)

    def push(self, words: str, *names: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **ENVIRONMENT,
            "HOME": str(self.folder),
            "HUAI_CLIENT": str(self.program),
            "HUAI_CLIENT_ROOT": str(self.down.root),
            "SSH_ORIGINAL_COMMAND": words,
            **more,
        }
        return subprocess.run(
            ["/bin/sh", HOOK, *(names or (self.down.name,))],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @property
    def runs(self) -> list[str]:
        """The arguments of each call of the client."""
        path = self.folder / "runs"
        return path.read_text().splitlines() if path.exists() else []

    def is_synced(self) -> bool:
        return self.down.state.applied is not None


@pytest.fixture
def pushed(place: Site, tmp_path: Path) -> Pushed:
    up = place.upstream()
    up.put(b"a", b"1")
    up.commit()
    return Pushed(place.downstream(up), tmp_path)


def test_a_push_starts_a_sync_and_returns(place: Site, tmp_path: Path) -> None:
    up = place.upstream()
    up.put(b"a", b"1")
    up.commit()
    pushed = Pushed(place.downstream(up), tmp_path)
    (tmp_path / "wait").touch()
    log = tmp_path / "log"
    done = pushed.push("sync:all", HUAI_PUSH_LOG=str(log))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    until(lambda: pushed.runs)
    assert pushed.runs == [f"sync --quiet --wait 3600 --log-file {log} -- {up.name}"]
    (tmp_path / "wait").unlink()
    until(pushed.is_synced)
    until(lambda: "total file size" in log.read_text())
    assert_equal(up, pushed.down)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("sync:stage1", "first"),
        ("sync:stage2 sync:callback", "first"),
        ("sync:mhop sync:stage1", "first"),
        ("ftpsync sync:all", "first"),
        ("sync:archive:second", "second"),
        ("  sync:all \t sync:archive:second ", "second"),
        ("sync:archive:", "first"),
    ],
)
def test_the_words_of_archvsync(pushed: Pushed, words: str, name: str) -> None:
    assert pushed.push(words, "first", "second").returncode == 0
    until(lambda: pushed.runs)
    assert pushed.runs == [f"sync --quiet --wait 3600 -- {name}"]


REFUSED = {
    "": 1,
    "id": 1,
    "sync:every": 1,
    "sync:archive:third": 45,
    "sync:archive:../first": 45,
    "sync:archive:f*": 45,
    "sync:archive:--root=/": 45,
    "sync:archive:$(touch${IFS}here) sync:all": 45,
    "sync:all; touch here": 1,
    "sync:archive:first;touch here": 45,
    "*": 1,
}


def test_nothing_else_is_done(pushed: Pushed) -> None:
    (pushed.folder / "sync:all").touch()  # as a pattern would find it
    before = sorted(os.listdir(pushed.folder))
    for words, code in REFUSED.items():
        done = pushed.push(words, "first", "second", PWD=str(pushed.folder))
        assert (words, done.returncode, done.stdout) == (words, code, "")
        assert done.stderr.startswith("ssh-push: ")
    time.sleep(0.2)
    assert sorted(os.listdir(pushed.folder)) == before
    assert pushed.runs == []


def test_pushes_in_a_row_are_two_syncs(pushed: Pushed) -> None:
    """One that runs, and one that begins after the last push."""
    (pushed.folder / "wait").touch()
    assert pushed.push("sync:all").returncode == 0
    until(lambda: len(pushed.runs) == 1)
    for _ in range(5):
        assert pushed.push("sync:all").returncode == 0
    assert len(pushed.runs) == 1
    (pushed.folder / "wait").unlink()
    until(lambda: len(pushed.runs) == 2)
    until(pushed.is_synced)
    assert pushed.push("sync:all").returncode == 0
    until(lambda: len(pushed.runs) == 3)


def test_what_is_wrong_with_the_line_is_said(pushed: Pushed) -> None:
    done = pushed.push("sync:all", HUAI_CLIENT="/no/such/program")
    assert (done.returncode, done.stdout) == (51, "")
    (pushed.folder / ".local").write_text("no folder")
    assert pushed.push("sync:all").returncode == 11
    bare = subprocess.run(
        ["/bin/sh", HOOK], capture_output=True, text=True, timeout=60, check=False
    )
    assert (bare.returncode, "usage" in bare.stderr) == (1, True)
