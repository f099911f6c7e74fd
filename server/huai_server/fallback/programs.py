"""Running rsync, for the fallback.

The daemon is stock rsync.  Its environment (the preload library) and its configuration make it a
fallback.  Rule to keep: only the main thread starts daemons, because a listener ends with the
thread that started it.
"""

import ctypes
import errno
import os
import resource
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import IO

from huai_schema.errors import ExitCode, HuaiError
from huai_server.fallback import libc

_START_SECONDS = 10.0
_POLL_SECONDS = 0.02
_KILL_SECONDS = 2.0
_SERVED = (0, 23, 24)
"""Exit codes of rsync if a daemon was there: all of it came, or some of it."""
_QUESTION = b"@RSYNCD: 29.0\n#list\n"
"""What a probe sends: rsync logs no error for it."""
_PARENT_DEATH_SIGNAL, _CHILD_SUBREAPER = 1, 36
"""Of prctl(2)."""
_LACKING = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
"""The errors on a machine without IPv6."""
_LISTEN_HINTS = {
    errno.EADDRINUSE: "end the program that listens there, or set fallback.port to another port",
    errno.EACCES: "ports below 1024 need root (CAP_NET_BIND_SERVICE): set fallback.port",
}


class ProgramError(HuaiError):
    """Rsync is missing, does not start or does not answer."""

    exit_code = ExitCode.REQUIREMENT


class DaemonListenError(HuaiError):
    """The daemon cannot listen on its address and port."""

    exit_code = ExitCode.CONFIG


def find(program: str) -> Path:
    """The path of `program`, or `ProgramError`."""
    found = shutil.which(program)
    if found is None:
        raise ProgramError(
            f"{program}: no such program", hint="install rsync, or set fallback.rsync to its path"
        )
    return Path(found)


class Daemon:
    """An rsync daemon in the foreground, in a process group of its own."""

    def __init__(
        self, program: Path, config: Path, address: tuple[str, int], library: Path | None
    ) -> None:
        """Start it; `wait_until_ready` tells when it accepts connections.

        Raises `DaemonListenError` if another program listens there: rsync would end, or serve only
        the addresses that are free, and the other program would answer our clients.
        """
        self._host, self.port = address
        check_free(*address)
        # When the listener ends, this process becomes the parent of its connections.
        _control(_CHILD_SUBREAPER, 1)
        command = [str(program), "--daemon", "--no-detach", f"--config={config}"]
        command += [f"--port={self.port}", *([f"--address={self._host}"] if self._host else [])]
        with _starting(program):
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=_environment(library),
                start_new_session=True,
                preexec_fn=partial(_end_with, os.getpid()),  # noqa: PLW1509 (takes no lock)
            )

    @property
    def group(self) -> int:
        """The process group of the listener and of all its connections."""
        return self._process.pid

    def relay(self, line: Callable[[str], None]) -> None:
        """Call `line` with each line that the listener or a connection writes."""
        if self._process.stderr is not None:
            Thread(target=_relay, args=(self._process.stderr, line), daemon=True).start()

    def ended(self) -> int | None:
        """The exit status of the listener; None while it runs."""
        return self._process.poll()

    def wait_until_ready(self) -> None:
        """Return when it answers; `ProgramError` if it ends before, or takes too long."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if (status := self._process.poll()) is not None:
                raise ProgramError(
                    f"rsync ended at once with status {status}",
                    hint="see its messages above; the port may be in use, or below 1024",
                )
            if self._greets():
                return
            time.sleep(_POLL_SECONDS)
        raise ProgramError("rsync does not accept connections", hint="see its messages above")

    def stop_listening(self) -> None:
        """End the listener; connections go on."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(_KILL_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """End the listener and all connections."""
        self.stop_listening()
        end_group(self.group)

    def _greets(self) -> bool:
        host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # noqa: S104 (compared)
        try:
            with socket.create_connection((host, self.port), timeout=1) as connection:
                greeting = connection.recv(64)
                connection.sendall(_QUESTION)
                while connection.recv(4096):
                    pass
                return greeting.startswith(b"@RSYNCD:")
        except OSError:
            return False


def is_running(group: int) -> bool:
    """Whether connections of a listener that has ended go on.

    The group keeps its number until this process has waited for the last of them, so the number
    cannot be that of another group.
    """
    with suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
        return True
    return False


def end_group(group: int) -> None:
    """End all connections of a listener that has ended: first by SIGTERM, then by SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if is_running(group):
            os.killpg(group, number)
            deadline = time.monotonic() + _KILL_SECONDS
            while time.monotonic() < deadline and is_running(group):
                time.sleep(_POLL_SECONDS)


def free_port(host: str) -> int:
    """A port that nobody listens on now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def daemon(
    program: Path, config: Path, address: tuple[str, int], library: Path | None
) -> Iterator[list[str]]:
    """Run a daemon during the block; yields the list that its output lines are added to."""
    said: list[str] = []
    running = Daemon(program, config, address, library)
    running.relay(said.append)
    try:
        running.wait_until_ready()
        yield said
    finally:
        running.stop()


def fetch_all(program: Path, url: str, folder: Path, *, seconds: float) -> int:
    """Run rsync as a client, to bring all below `url` into `folder`; returns its exit code."""
    command = [str(program), "-r", "--times", "--links", "--timeout=10", url, f"{folder}/"]
    with _starting(program):
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=seconds, check=False, env=_environment(None)
            )
        except subprocess.TimeoutExpired as error:
            raise ProgramError(
                f"{program}: a small transfer took more than {seconds:.0f} seconds",
                hint="check the load of this machine, then try again",
            ) from error
    return done.returncode


def fetch_files(
    program: Path, url: str, paths: Sequence[bytes], folder: Path, *, seconds: float, most: int
) -> bool:
    """Run rsync as a client, to bring files below `url` into `folder`, each under its path.

    What cannot be had is not there afterwards, and nothing larger than `most` bytes.  Returns
    whether the daemon served anything, or said that it has not.
    """
    command = [str(program), "--timeout=30", f"--max-size={most}", "--from0", "--files-from=-"]
    with _starting(program), suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            [*command, "--no-motd", f"{url}/", f"{folder}/"],
            input=b"\0".join(paths),
            capture_output=True,
            timeout=seconds,
            check=False,
            env=_environment(None),
            # A daemon may send more than it says.
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most)),
        )
        return done.returncode in _SERVED
    return False


def _relay(stream: IO[bytes], line: Callable[[str], None]) -> None:
    with stream:
        for raw in stream:
            with suppress(OSError):  # nobody reads ours; rsync must not wait for that
                line(raw.decode("utf-8", "replace").rstrip("\n"))


@contextmanager
def _starting(program: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ProgramError(
            f"{program}: cannot be started: {error.strerror}",
            hint="set fallback.rsync to an rsync that runs here",
        ) from error


def _environment(library: Path | None) -> dict[str, str]:
    """This process's, without variables that redirect rsync; preloads at most `library`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != "LD_PRELOAD" and not name.startswith("RSYNC_")
    }
    return kept if library is None else {**kept, "LD_PRELOAD": str(library)}


def check_free(host: str, port: int) -> None:
    """Raise `DaemonListenError` if an address that rsync is going to bind is in use."""
    try:
        wanted = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, address in wanted:
            _try_to_bind((family, kind, protocol), address, required=bool(host))
    except OSError as error:
        raise DaemonListenError(
            f"cannot listen on {host or '*'}:{port}: {error.strerror}",
            hint=_LISTEN_HINTS.get(error.errno or 0, "set fallback.address and fallback.port"),
        ) from error


def _try_to_bind(
    kind: tuple[int, int, int], address: tuple[object, ...], *, required: bool
) -> None:
    try:
        with socket.socket(*kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if kind[0] == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(address)
    except OSError as error:
        if required or error.errno not in _LACKING:
            raise


def _end_with(parent: int) -> None:
    """Let the kernel end this process when its parent ends."""
    _control(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)


def _control(option: int, value: int) -> None:
    libc.call("prctl", option, ctypes.c_ulong(value), *[ctypes.c_ulong(0)] * 3)
