"""The container engine of this machine, and how commands are given to it.

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
"""Not part of the project; makes the second run quick."""

_ASK_SECONDS = 30
_SHOWN = 40
"""Lines of a command that failed."""


class ComposeError(Exception):
    """Something is not as it has to be; the message says what."""


class Engine(NamedTuple):
    """What was found."""

    compose: tuple[str, ...]
    """How compose is called."""

    def docker(self, *arguments: str, seconds: float = 60) -> str:
        """What the engine's own command line says."""
        return run(["docker", *arguments], seconds=seconds)


def find_engine() -> Engine | str:
    """The engine, or why there is none."""
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
    command: Sequence[str],
    *,
    seconds: float,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a command to its end; returns its standard output, `ComposeError` if it failed."""
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
        said = "\n".join((done.stdout + done.stderr).splitlines()[-_SHOWN:])
        raise ComposeError(f"{' '.join(command)}\nended with exit code {done.returncode}:\n{said}")
    return done.stdout


def _works(*command: str) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_ASK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
