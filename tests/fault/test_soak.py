"""Kills at random while the upstream changes without end: nothing half is seen, all converges.

Every file says what it is (`sealed`), so that one look tells whether it is whole.
HUAI_TEST_SOAK: for how many seconds; HUAI_TEST_SEED: another course of things.
"""

import hashlib
import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fault.story import finish
from tests.integration.http_fixtures import descendants
from tests.integration.upstream import Downstream, Site, Upstream, ended

SOAK_SECONDS = int(os.environ.get("HUAI_TEST_SOAK", "15"))
SEED = int(os.environ.get("HUAI_TEST_SEED", "1"))
ROUNDS_BETWEEN_CHECKS = 8
KILLED = -signal.SIGKILL
EXPECTED = {0, 10, 11, 12, 20, 23, 24, 30, 43, 48, KILLED}
"""All that a run may say whose upstream moves, whose rsync dies, or whose place is locked."""


def sealed(path: str, version: int, size: int) -> bytes:
    """Content that names its path, its version and its own digest."""
    body = f"{path}\n{version}\n".encode() * (size // (len(path) + 8) + 1)
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def whole(content: bytes) -> bool:
    digest, _, body = content.partition(b"\n")
    return hashlib.sha256(body).hexdigest().encode() == digest


class Busy:
    """An upstream whose administrator is never done."""

    def __init__(self, up: Upstream, chance: random.Random) -> None:
        self._up = up
        self._chance = chance
        self._version = 0
        for folder in range(6):
            for number in range(30):
                self._write(f"d{folder}/{number}")
        self.change()

    def change(self) -> None:
        """Some changes, then a commit."""
        for _ in range(self._chance.randrange(1, 12)):
            self._chance.choice(
                [self._edit, self._edit, self._add, self._delete, self._rename, self._touch]
            )()
        if self._chance.random() < 0.3:
            self._rename_folder()
        self._up.commit()

    def _write(self, path: str) -> None:
        self._version += 1
        size = self._chance.choice([10, 1_000, 200_000])
        name = os.fsencode(path)
        # As updates are made: beside it, then renamed, so that nothing half is ever there.
        beside = self._up.put(name + b".new", sealed(path, self._version, size), mtime=None)
        beside.rename(self._up.at(name))

    def _files(self) -> list[Path]:
        return [path for path in sorted(self._up.tree.rglob("*")) if path.is_file()]

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._up.tree))

    def _edit(self) -> None:
        self._write(self._name(self._chance.choice(self._files())))

    def _add(self) -> None:
        self._write(f"d{self._chance.randrange(8)}/sub{self._chance.randrange(3)}/{self._version}")

    def _delete(self) -> None:
        files = self._files()
        if len(files) > 100:
            self._chance.choice(files).unlink()

    def _rename(self) -> None:
        path = self._chance.choice(self._files())
        path.rename(path.with_name(f"r{self._version}"))
        self._version += 1

    def _touch(self) -> None:
        path = self._chance.choice(self._files())
        path.chmod(self._chance.choice([0o600, 0o644, 0o755]))
        os.utime(path)

    def _rename_folder(self) -> None:
        folders = sorted(path for path in self._up.tree.iterdir() if path.is_dir())
        path = self._chance.choice(folders)
        path.rename(path.with_name(f"d{self._version}"))
        self._version += 1


def halves(down: Downstream) -> list[Path]:
    """The published files that are not whole."""
    found = []
    for path in down.dest.rglob("*"):
        if ".~tmp~" in path.parts or not path.is_file():
            continue
        with suppress(FileNotFoundError):
            if not whole(path.read_bytes()):
                found.append(path)
    return found


def disturbed(process: subprocess.Popen[str], chance: random.Random) -> int:
    """Let it run for a while, then kill it, or its rsyncs under it; how it ended."""
    seconds = chance.uniform(0.1, 1.2)
    if chance.random() < 0.3:
        time.sleep(seconds)
        for child in descendants(process.pid):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        seconds = 10
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.kill()
    return ended(process).code


@pytest.mark.slow
@pytest.mark.timeout(SOAK_SECONDS + 300)
@pytest.mark.parametrize("seed", [SEED])
def test_kills_at_random_on_a_busy_upstream(place: Site, seed: int) -> None:
    chance = random.Random(seed)
    up = place.upstream()
    busy = Busy(up, chance)
    down = place.downstream(up, max_delete="100%", bwlimit=4000)
    until = time.monotonic() + SOAK_SECONDS
    killed = rounds = 0
    while time.monotonic() < until:
        rounds += 1
        busy.change()
        code = disturbed(down.spawn("sync", "-q", "--wait", "20", down.name), chance)
        assert code in EXPECTED, code
        killed += code == KILLED
        assert halves(down) == []
        if rounds % ROUNDS_BETWEEN_CHECKS == 0:
            finish(down, up)
    assert killed > SOAK_SECONDS // 10, "hardly any run was killed"
    finish(down, up)
