"""The process that has loaded a program and is copied for each start (`prepared`).

    python -m tests.support.prepared_program HANDLE PACKAGE MODULE

A copy has the parent of this process for its parent, who can wait for it.  It runs `main` of the
module at the end of this one, and ends as the interpreter does, but takes nothing apart: that
touches all that was loaded, and costs as much as a short run.  `short_waits` shortens its pauses.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import platform
import signal
import socket
import sys
import threading

from tests.support.short_waits import shorten

_CLONE = {"x86_64": 56, "aarch64": 220}[platform.machine()]
_CLONE_PARENT = 0x8000


def load(package: str) -> None:
    """Import all of a package but `_redirect`, a library for other programs, and MPI.

    MPI begins with its import, and its threads, which a copy has not, are waited for at the end.
    """
    loaded = importlib.import_module(package)
    for module in pkgutil.walk_packages(loaded.__path__, f"{package}."):
        name = module.name.rpartition(".")[2]
        if not name.startswith("_") and name not in ("mpi", "mpi_engine"):
            importlib.import_module(module.name)


def copied() -> int:
    """As fork(2), but the child is one of the parent's."""
    python, libc = ctypes.pythonapi, ctypes.PyDLL(None)  # neither lets go of the interpreter
    python.PyOS_BeforeFork()
    child: int = libc.syscall(_CLONE, _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    return child


def wait(channel: socket.socket) -> None:
    """Be copied for each request; return in the copies."""
    while True:
        request, handles, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if not request:
            os._exit(0)
        child = copied()
        if child == 0:
            channel.close()
            become(request, handles)
            return
        for handle in handles:
            os.close(handle)
        channel.send(b"%d" % child)


def become(request: bytes, handles: list[int]) -> None:
    """Turn this process into the one that exec would have made."""
    arguments, environment, folder = json.loads(request)
    for standard, handle in enumerate(handles):
        os.dup2(handle, standard)
    for handle in handles:
        os.close(handle)
    flags = sys.orig_argv[: sys.orig_argv.index("-m") + 1]
    sys.orig_argv[:] = [*flags, *arguments]  # the first one is the module
    sys.argv = arguments
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)


def end(code: int) -> None:
    """Leave nothing undone that the interpreter does for others; return if it has to do so."""
    threads = [each for each in threading.enumerate() if not each.daemon]
    if threads != [threading.main_thread()]:
        return  # it waits for them
    atexit._run_exitfuncs()  # it tells their errors, as at any end
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # closed as the program began
                stream.flush()
    except (OSError, ValueError):
        return  # it says what is lost, and has a code for it
    os._exit(code & 0xFF)


if __name__ == "__main__":
    load(sys.argv[2])
    shorten(sys.argv[2], "huai_schema")
    main = importlib.import_module(sys.argv[3]).main
    gc.freeze()  # no collection of a copy looks at what was loaded
    wait(socket.socket(fileno=int(sys.argv[1])))
    try:
        main()
    except SystemExit as ending:
        if ending.code is None or isinstance(ending.code, int):
            end(int(ending.code or 0))
        raise
    end(0)
