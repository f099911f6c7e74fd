"""Runs a function, or a program, as an ordinary user in a process of its own.

Everything is imported before the rights are dropped, because the sources may be where only root
can read, as below /root.
"""

import importlib
import os
import pickle
import pkgutil
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")

NOBODY = 65534
_TOP = Path(__file__).parents[2]
_LATE = {
    "huai_client": ("encodings.ascii", "encodings.idna"),
    "huai_server": (
        *("encodings.ascii", "encodings.idna", "fastapi.telemetry._runtime", "httptools"),
        *("uvicorn.lifespan.on", "uvicorn.loops.auto", "uvicorn.loops.uvloop", "uvloop"),
    ),
}
"""Modules that importing the package's own ones does not import."""


def run_unprivileged(work: Callable[[Path], object], folder: Path) -> None:
    """Call `work(folder)` as user 65534, the owner of `folder` (as this user if not root)."""
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    load("huai_client")

    def call() -> None:
        work(folder)

    as_nobody(call)


def as_nobody(work: Callable[[], Result]) -> Result:
    """Return what `work` returns in a process without privileges; load its arguments before."""

    def unprivileged() -> Result:
        become_nobody()
        return work()

    return in_child(unprivileged)


def in_child(work: Callable[[], Result]) -> Result:
    """Return what `work` returns in a child process, or what it raises."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child calls nothing that locks
        child = os.fork()
    if child == 0:
        answer: tuple[bool, object]
        try:
            answer = True, work()
        except BaseException as error:  # noqa: BLE001 (goes to the parent, whatever it is)
            answer = False, f"{error!r}\n{traceback.format_exc()}"
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        raw = pipe.read()
    os.waitpid(child, 0)
    good, result = pickle.loads(raw)  # noqa: S301 (our own child wrote it)
    assert good, result
    returned: Result = result
    return returned


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


@cache
def load(package: str) -> None:
    """Import all of `package`, what both sides share, and what libraries import late.

    Not MPI, which begins with its import.
    """
    for loaded in ("huai_schema", "huai_program", package):
        path = importlib.import_module(loaded).__path__
        for module in pkgutil.walk_packages(path, prefix=f"{loaded}."):
            # Python does not import native libraries.
            if "._" not in module.name and not module.name.endswith((".mpi", ".mpi_engine")):
                importlib.import_module(module.name)
    for name in _LATE.get(package, ()):
        importlib.import_module(name)
    if package == "huai_client":
        profiles = importlib.import_module("huai_client.plan.profiles")
        profiles.profiles()
        profiles.known_volatile()


def become_nobody() -> None:
    """Change from root to an unprivileged user; other users stay."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
