"""`huai-rsync` and the real rsync, called with one command line, for comparison."""

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import prepared
from tests.support.upstream import ENVIRONMENT, SECONDS, Downstream, Ended, Site, Upstream

TUNASYNC = (
    *("-aHvh", "--no-o", "--no-g", "--stats", "--filter", "risk .~tmp~/", "--exclude", ".~tmp~/"),
    *("--delete", "--delete-after", "--delay-updates", "--safe-links", "--timeout=120"),
)
"""The options of tunasync's rsync provider."""
FEDORA = ("-aSH", "-f", "R .~tmp~", "--stats", "--delay-updates", "--delete-delay")
FTPSYNC = (
    *("-prltvHSB8192", "--safe-links", "--chmod=D755,F644", "--timeout", "120", "--stats"),
    *("--no-human-readable", "--no-inc-recursive"),
)
FTPSYNC_SECOND = (
    *("--max-delete=40000", "--delay-updates", "--delete", "--delete-delay", "--delete-excluded"),
)

_SCRIPT = f"#!{sys.executable}\nfrom huai_client.huai_rsync.main import main\nmain()\n"
_HUAI_RSYNC = prepared.Program("huai_client", "huai_client.huai_rsync.main")


def program(folder: Path, name: str = "huai-rsync") -> Path:
    """The console script, as an installation makes it."""
    path = folder / name
    path.write_text(_SCRIPT, encoding="utf-8")
    path.chmod(0o755)
    return path


def run(command: str | Path, *arguments: str, environment: Mapping[str, str]) -> Ended:
    """Run a program to its end; an unchanged one of `program` is prepared."""
    environment = {**ENVIRONMENT, **environment}
    if isinstance(command, Path) and _is_ours(command):
        done = prepared.ran(_HUAI_RSYNC, arguments, environment, SECONDS)
    else:
        done = subprocess.run(
            [command, *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=environment,
            timeout=SECONDS,
            text=True,
            check=False,
        )
    assert "Traceback" not in done.stderr, done.stderr
    return Ended(done.returncode, done.stdout, done.stderr)


def _is_ours(command: Path) -> bool:
    """True if this is the script itself: a link to it is another program."""
    return (
        not command.is_symlink() and command.is_file() and command.read_bytes() == _SCRIPT.encode()
    )


@dataclass
class Mirror:
    """A downstream that both programs may bring up to date, each in its own tree."""

    up: Upstream
    down: Downstream
    program: Path
    source: str
    twin: Path
    """The real rsync's tree."""

    def spawn(self, *options: str) -> subprocess.Popen[bytes]:
        """`huai-rsync` as a process, still running."""
        return subprocess.Popen(
            [self.program, *options, self.source, f"{self.down.dest}/"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**ENVIRONMENT, "HUAI_CLIENT_ROOT": str(self.down.root)},
        )

    def call(self, *options: str, environment: Mapping[str, str] | None = None) -> Ended:
        """`huai-rsync`, from the upstream to the downstream."""
        settings = {"HUAI_CLIENT_ROOT": str(self.down.root), **(environment or {})}
        return run(self.program, *options, self.source, f"{self.down.dest}/", environment=settings)

    def real(self, *options: str) -> Ended:
        """The real rsync with the same options, into the twin."""
        return run("rsync", *options, self.source, f"{self.twin}/", environment={})

    def call_both(self, *options: str) -> tuple[Ended, Ended]:
        """Return how both programs ended with the same options; both have to succeed."""
        ended, real = self.call(*options), self.real(*options)
        assert (ended.code, real.code) == (0, 0), (ended, real)
        return ended, real

    def assert_equal(self, *, links: bool = True) -> None:
        """Compare the two trees."""
        assert picture(self.down.dest, links=links) == picture(self.twin, links=links)


class RecordedRsync:
    """A program to put first on PATH, which runs rsync and records its arguments."""

    def __init__(self, folder: Path) -> None:
        """Write it into a new folder `bin`."""
        self.environment = {"PATH": f"{folder / 'bin'}{os.pathsep}{ENVIRONMENT['PATH']}"}
        self._log = folder / "calls"
        real = shutil.which("rsync", path=ENVIRONMENT["PATH"])
        script = folder / "bin/rsync"
        script.parent.mkdir()
        script.write_text(
            f'#!/bin/sh\n(printf "%s\\t" "$@"; echo) >>{self._log}\nexec {real} "$@"\n'
        )
        script.chmod(0o755)

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of each call."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [line.split("\t")[:-1] for line in lines]


def mirror(place: Site, folder: Path, up: Upstream | None = None) -> Mirror:
    """A new mirror of a new upstream, with empty trees."""
    up = up or place.upstream()
    down = place.downstream(up)
    twin = folder / "twin"
    twin.mkdir()
    for tree in (down.dest, twin):
        os.utime(tree, (0, 0))  # a run that changes nothing leaves it
    source = f"{place.content_url}/{up.name}/"
    return Mirror(up, down, program(folder), source, twin)


def picture(top: Path, *, links: bool = True) -> dict[str, list[object]]:
    """Everything of a tree that both programs keep, by path; without hardlinks for rsync's -H."""
    return {path: rest for path, *rest in _entries(top, links=links)}


def _entries(top: Path, *, links: bool) -> Iterator[tuple[Any, ...]]:
    for folder, folders, names in os.walk(top):
        for name in (".", *folders, *names):
            path = Path(folder, name)
            status = path.lstat()
            kind = stat.S_IFMT(status.st_mode)
            mode = stat.S_IMODE(status.st_mode)
            owners = (status.st_uid, status.st_gid)
            mtime = status.st_mtime_ns
            content: object = None
            if stat.S_ISREG(status.st_mode):
                content = (path.read_bytes(), status.st_nlink if links else 1)
            elif stat.S_ISLNK(status.st_mode):
                content = path.readlink()
            if not stat.S_ISREG(status.st_mode):
                mtime //= 10**9  # rsync leaves a directory alone that it made in the same second
            yield str(path.relative_to(top)), mode, kind, mtime, owners, content


def closing(out: str) -> list[str]:
    """The last lines of rsync's talk, with what differs from run to run blanked out."""
    lines = out.splitlines()
    blanked = [re.sub(r"[0-9][0-9.,]*[KMG]?", "N", line) for line in lines[-2:]]
    return [re.sub(r"\((?:reg|dir|link).*\)", "(…)", line) for line in blanked]


def figure(out: str, name: str) -> str:
    """Return the value of `name:` in the statistics."""
    match = re.search(rf"^{re.escape(name)}: (.*)$", out, re.MULTILINE)
    assert match, out
    return match[1]
