"""Runs one function of a test module as an ordinary user, in a process of its own.

`python -m tests.unprivileged MODULE FUNCTION FOLDER`: everything is imported before the
rights are dropped, so that the sources need not be readable for everybody.
"""

import importlib
import os
import subprocess
import sys
from pathlib import Path

NOBODY = 65534


def run_unprivileged(module: str, function: str, folder: Path) -> None:
    """`module.function(folder)` as nobody, who owns `folder` (root's own user if not root)."""
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    command = [sys.executable, "-m", "tests.unprivileged", module, function, str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command,
        env=environment,
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _main(module: str, function: str, folder: str) -> None:
    importlib.import_module("huai_client.tree.system")
    call = getattr(importlib.import_module(module), function)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    call(Path(folder))


if __name__ == "__main__":
    _main(*sys.argv[1:])
