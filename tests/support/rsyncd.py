"""A real rsync daemon on loopback, for as long as a test needs it."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

IS_ROOT = os.geteuid() == 0
CHROOTS = ("yes", "no") if IS_ROOT else ("no",)
"""The value that `use_chroot` may have here."""
_STARTS = 5
_POLLS = 500
_POLL = 0.02


@contextmanager
def rsync_daemon(
    modules: Mapping[str, Path],
    *,
    program: str = "rsync",
    preload: Path | None = None,
    **extra: str,
) -> Iterator[str]:
    """Serve `modules` (name to folder); yields `rsync://127.0.0.1:PORT`, without a slash.

    `preload` is a library that the daemon loads first; `extra` are global settings of rsyncd.conf
    with `_` for blanks: `use_chroot="no"`.  An ordinary user's daemon keeps its user.
    """
    with tempfile.TemporaryDirectory(prefix="rsyncd-") as folder:
        config = Path(folder, "rsyncd.conf")
        config.write_text(_config(modules, Path(folder), extra))
        environment = os.environ | ({} if preload is None else {"LD_PRELOAD": str(preload)})
        process, port = _start(program, config, environment)
        try:
            yield f"rsync://127.0.0.1:{port}"
        finally:
            process.kill()  # rsync sleeps 0.4 s before it ends by SIGTERM
            process.wait()


def _config(modules: Mapping[str, Path], folder: Path, extra: Mapping[str, str]) -> str:
    settings = {
        "use chroot": CHROOTS[0],
        "log file": f"{folder}/log",
        "lock file": f"{folder}/lock",
        "reverse lookup": "no",
        **({"uid": "root", "gid": "root"} if IS_ROOT else {}),
        **{name.replace("_", " "): value for name, value in extra.items()},
    }
    if not IS_ROOT:
        settings = {name: value for name, value in settings.items() if name not in ("uid", "gid")}
    lines = [f"{name} = {value}" for name, value in settings.items()]
    for name, path in modules.items():
        lines += [f"[{name}]", f"path = {path}", "read only = yes"]
    return "\n".join(lines) + "\n"


def _start(
    program: str, config: Path, environment: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], int]:
    for _ in range(_STARTS):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        arguments = ["--daemon", "--no-detach", "--address=127.0.0.1", f"--port={port}"]
        process = subprocess.Popen(
            [program, *arguments, f"--config={config}"], stdin=subprocess.DEVNULL, env=environment
        )
        for _ in range(_POLLS):
            if process.poll() is not None:
                break  # another process took the port in between
            if _greets(port):
                return process, port
            time.sleep(_POLL)
        process.kill()
        process.wait()
    raise AssertionError("no rsync daemon came up")


def _greets(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            return connection.recv(8).startswith(b"@RSYNCD:")
    except OSError:
        return False
