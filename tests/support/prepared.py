"""Programs of ours as processes that need not load their modules first.

Loading them is most of a short run, and the tests start some thousand.  So a process that has
loaded them waits (`prepared_program`), and each start is a copy of it: a child of the test, with
arguments, variables and handles of its own, to wait for and to kill like any other.  What a test
says about the start itself, or about a variable that is read as modules are loaded, needs the
interpreter: `subprocess`.
"""

import atexit
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_ROOT = Path(__file__).parents[2]
SOURCES = os.pathsep.join(
    str(_ROOT / part) for part in ("", "schema", "program", "server", "client")
)
"""For PYTHONPATH."""
_ENVIRONMENT = {
    "LC_ALL": "C",
    "PATH": os.environ["PATH"],
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": SOURCES,
}


class Program(NamedTuple):
    """A package that is loaded, and the module where it begins."""

    package: str
    """All of its modules are loaded."""
    module: str
    """Has a `main`."""
    flags: tuple[str, ...] = ()
    """The flags of the interpreter."""


CLIENT = Program("huai_client", "huai_client.__main__")
SERVER = Program("huai_server", "huai_server.__main__")


class Started(subprocess.Popen[Any]):
    """A process of a program; `options` are streams, and `text`, as of `Popen`."""

    def __init__(
        self,
        program: Program,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        **options: Any,
    ) -> None:
        for name in ("LC_ALL", "PYTHONWARNINGS"):  # what an interpreter reads as it starts
            assert environment.get(name) == _ENVIRONMENT.get(name), name
        self._program = program
        super().__init__([program.module, *arguments], env=environment, **options)

    def _execute_child(self, *given: Any) -> None:
        """In the place of fork and exec; the order of what it is given is that of `Popen`."""
        arguments, environment, handles = given[0], given[6], given[10:16]
        theirs = (handles[0], handles[3], handles[5])
        channel = _loaded(self._program)
        request = json.dumps([arguments, dict(environment), str(Path.cwd())]).encode()
        lent = [own if own != -1 else standard for standard, own in enumerate(theirs)]
        socket.send_fds(channel, [request], lent)
        answer = channel.recv(100)
        assert answer, f"{self._program.module} could not be loaded"
        self.pid = int(answer)
        self._child_created = True
        self._close_pipe_fds(*handles)  # type: ignore[attr-defined] # no part of what it shows


def ran(
    program: Program, arguments: Sequence[str], environment: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    with Started(
        program,
        arguments,
        environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess([*arguments], process.returncode, out, err)


@cache
def _loaded(program: Program) -> socket.socket:
    """The way to the process that waits; it ends when this one does, which closes the way."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, *program.flags, "-m", "tests.support.prepared_program"]
    process = subprocess.Popen(
        [*command, str(theirs.fileno()), program.package, program.module],
        pass_fds=[theirs.fileno()],
        env=_ENVIRONMENT,
        stdin=subprocess.DEVNULL,
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours
