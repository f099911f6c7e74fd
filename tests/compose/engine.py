"""Runs commands of the container engine of this machine.

Either the compose plugin or docker-compose 1.29 does.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[2]
CACHE = TOP / "build"
"""The folder of caches outside of the project, for a quick second run."""

_ASK_SECONDS = 30
_SHOWN = 40
"""The number of lines of a failed command that are shown."""


class ComposeError(Exception):
    """An error because the services are not as they should be."""


class Engine(NamedTuple):
    """A container engine."""

    compose: tuple[str, ...]
    """The command of compose."""

    def docker(self, *arguments: str, seconds: float = 60) -> str:
        """Return the output of a command of the engine."""
        return run(["docker", *arguments], seconds=seconds)


def find_engine() -> Engine | str:
    """Return the engine, or the reason why it is missing."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    if not _works("docker", "version"):
        return "docker's daemon does not answer"
    if _works("docker", "compose", "version"):
        return Engine(("docker", "compose"))
    if _works("docker-compose", "version"):
        return Engine(("docker-compose",))
    return "neither the compose plugin nor docker-compose is installed"


def run(
    command: Sequence[str], *, seconds: float, environment: Mapping[str, str] | None = None
) -> str:
    """Run a command; return its standard output, or raise `ComposeError` if it failed."""
    try:
        done = subprocess.run(
            command,
            cwd=TOP,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ComposeError(f"{' '.join(command)}\nnot done after {seconds:.0f} s") from None
    if done.returncode != 0:
        output = "\n".join((done.stdout + done.stderr).splitlines()[-_SHOWN:])
        raise ComposeError(
            f"{' '.join(command)}\nended with exit code {done.returncode}:\n{output}"
        )
    return done.stdout


def _works(*command: str) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_ASK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
