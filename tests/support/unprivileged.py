"""Runs a function of a test module, or a program, as an ordinary user in a process of its own.

`python -m tests.support.unprivileged MODULE FUNCTION FOLDER`: everything is imported before the
rights are dropped, because the sources may stand where only root can read, as below /root.
"""

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

NOBODY = 65534
_TOP = Path(__file__).parents[2]
_LATE = {
    "huai_client": ("encodings.ascii", "encodings.idna", "tenacity"),
    "huai_server": (
        *("encodings.ascii", "encodings.idna", "fastapi.telemetry._runtime", "httptools"),
        *("uvicorn.lifespan.on", "uvicorn.loops.auto", "uvicorn.loops.uvloop", "uvloop"),
    ),
}
"""What no module of the package imports when it is imported itself."""


def run_unprivileged(module: str, function: str, folder: Path) -> None:
    """`module.function(folder)` as nobody, who owns `folder` (root's own user if not root)."""
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    command = [sys.executable, "-m", "tests.support.unprivileged", module, function, str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command,
        env=environment,
        cwd=_TOP,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def program_as_nobody(package: str) -> str:
    """Python text that runs the command line of `package` with the arguments that follow."""
    return (
        f"import sys; sys.path.insert(0, {str(_TOP)!r})\n"
        "from tests.support.unprivileged import become_nobody, load\n"
        f"load({package!r})\n"
        "become_nobody()\n"
        f"from {package}.cli.main import main\n"
        "main()\n"
    )


def load(package: str) -> None:
    """Import all of `package`, and what the libraries that it uses import late."""
    path = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(path, prefix=f"{package}."):
        if "._" not in module.name:  # a native library, which Python does not import
            importlib.import_module(module.name)
    for name in _LATE.get(package, ()):
        importlib.import_module(name)
    if package == "huai_client":
        profiles = importlib.import_module("huai_client.profiles.load")
        profiles.profiles()
        profiles.known_volatile()


def become_nobody() -> None:
    """Root becomes the user nobody; anybody else stays who they are."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def _main(module: str, function: str, folder: str) -> None:
    load("huai_client")
    call = getattr(importlib.import_module(module), function)
    become_nobody()
    call(Path(folder))


if __name__ == "__main__":
    _main(*sys.argv[1:])
