"""Running rsync, for the fallback and for probes.

The daemon is stock rsync with the preload library in its environment and the configuration of the
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

from huai_program.programs import run_captured
from huai_schema.errors import ExitCode, HuaiError
from huai_server.fallback import libc

_START_SECONDS = 10.0
_POLL_SECONDS = 0.02
_KILL_SECONDS = 2.0
_TRANSFER_SECONDS = 30
_SERVED = (0, 23, 24)
"""The exit codes of rsync after a daemon has answered: all files arrived, or only some."""
_LIST_REQUEST = b"@RSYNCD: 29.0\n#list\n"
"""The request of a start-up check, for which rsync logs no error."""
_PARENT_DEATH_SIGNAL, _CHILD_SUBREAPER = 1, 36
"""The options of prctl(2)."""
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
    """Return the path of `program`; raises `ProgramError` if it is missing."""
    path = shutil.which(program)
    if path is None:
        raise ProgramError(
            f"{program}: program not found", hint="install rsync, or set fallback.rsync to its path"
        )
    return Path(path)


class Daemon:
    """An rsync daemon in the foreground, in a process group of its own, until `stop`."""

    def __init__(
        self, program: Path, config: Path, address: tuple[str, int], library: Path | None
    ) -> None:
        """Start the daemon, with `library` as the preload library; does not wait until it listens.

        `config` is the path of rsyncd.conf, `address` a host, empty for all addresses, and a port.
        This process becomes the parent of its connections when the listener ends.  Raises
        `ProgramError` if rsync cannot be started, `DaemonListenError` if another program listens
        there: rsync would exit, or serve only the free addresses while the other program answers
        clients.
        """
        self._host, self.port = address
        check_free(*address)
        # When the listener ends, this process becomes the parent of its connections.
        _prctl(_CHILD_SUBREAPER, 1)
        command = [str(program), "--daemon", "--no-detach", f"--config={config}"]
        command += [f"--port={self.port}", *([f"--address={self._host}"] if self._host else [])]
        with _start_errors(program):
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

    def log_output(self, log: Callable[[str], None]) -> None:
        """Call `log`, in a new thread, with each line that the listener or a connection writes."""
        if self._process.stderr is not None:
            Thread(target=_log_lines, args=(self._process.stderr, log), daemon=True).start()

    def exit_status(self) -> int | None:
        """Return the exit status of the listener; None while it runs."""
        return self._process.poll()

    def wait_until_ready(self) -> None:
        """Wait until it accepts connections; raises `ProgramError` if it exits, or after 10 s."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if (status := self._process.poll()) is not None:
                raise ProgramError(
                    f"rsync exited at once with status {status}",
                    hint="see its messages above; the port may be in use, or below 1024",
                )
            if self._answers():
                return
            time.sleep(_POLL_SECONDS)
        raise ProgramError("rsync does not accept connections", hint="see its messages above")

    def stop_listening(self) -> None:
        """End the listener by SIGTERM, after 2 s by SIGKILL, and wait; connections continue."""
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

    def _answers(self) -> bool:
        """True if the daemon greets and lists its modules."""
        host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # noqa: S104 (compared)
        try:
            with socket.create_connection((host, self.port), timeout=1) as connection:
                greeting = connection.recv(64)
                connection.sendall(_LIST_REQUEST)
                while connection.recv(4096):
                    pass
                return greeting.startswith(b"@RSYNCD:")
        except OSError:
            return False


def is_running(group: int) -> bool:
    """Return True while connections of an ended listener run; reap those that ended.

    The group's number cannot be reused until this process has waited for the last of them.
    """
    with suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
        return True
    return False


def end_group(group: int) -> None:
    """End the connections of an ended listener, `group`: by SIGTERM, after 2 s by SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if is_running(group):
            os.killpg(group, number)
            deadline = time.monotonic() + _KILL_SECONDS
            while time.monotonic() < deadline and is_running(group):
                time.sleep(_POLL_SECONDS)


def free_port(host: str) -> int:
    """Return a port of the address `host` on which no program listens now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def daemon(
    program: Path, config: Path, address: tuple[str, int], library: Path | None
) -> Iterator[list[str]]:
    """Run a daemon during the block; yields the list to which its output lines are added.

    Raises `DaemonListenError`, and `ProgramError` if it does not start within 10 s.
    """
    lines: list[str] = []
    running = Daemon(program, config, address, library)
    running.log_output(lines.append)
    try:
        running.wait_until_ready()
        yield lines
    finally:
        running.stop()


def fetch_all(program: Path, url: str, folder: Path) -> int:
    """Fetch all below `url` into `folder` with rsync; return its exit code.

    Raises `ProgramError` if it cannot be started, or after 30 s.
    """
    command = [str(program), "-r", "--times", "--links", "--timeout=10", url, f"{folder}/"]
    with _start_errors(program):
        try:
            return run_captured(command, seconds=_TRANSFER_SECONDS, env=_environment(None)).code
        except TimeoutError as error:
            raise ProgramError(
                f"{program}: a small transfer took more than {_TRANSFER_SECONDS} seconds",
                hint="check the load of this machine, and try again",
            ) from error


def fetch_files(
    program: Path, url: str, paths: Sequence[bytes], folder: Path, *, seconds: float, most: int
) -> bool:
    """Fetch files below `url` into `folder` with rsync, each under its path.

    Leaves out missing files and those larger than `most` bytes.  Returns True if the daemon
    answered, False also if it takes longer than `seconds`.  Raises `ProgramError` if rsync cannot
    be started.
    """
    command = [str(program), "--timeout=30", f"--max-size={most}", "--from0", "--files-from=-"]
    with _start_errors(program), suppress(TimeoutError):
        done = run_captured(
            [*command, "--no-motd", f"{url}/", f"{folder}/"],
            b"\0".join(paths),
            seconds=seconds,
            env=_environment(None),
            # A daemon may send more than it announces.
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most)),
        )
        return done.code in _SERVED
    return False


def _log_lines(stream: IO[bytes], log: Callable[[str], None]) -> None:
    """Log each line of `stream` until it ends, then close it."""
    with stream:
        for raw in stream:
            with suppress(OSError):  # our own output is closed, and rsync must not block
                log(raw.decode("utf-8", "replace").rstrip("\n"))


@contextmanager
def _start_errors(program: Path) -> Iterator[None]:
    """Convert an `OSError` of the block to a `ProgramError`."""
    try:
        yield
    except OSError as error:
        raise ProgramError(
            f"{program}: cannot be started: {error.strerror}",
            hint="set fallback.rsync to an rsync that runs here",
        ) from error


def _environment(library: Path | None) -> dict[str, str]:
    """Return this process's environment without LD_PRELOAD and RSYNC_*, preloading `library`."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "LD_PRELOAD" and not name.startswith("RSYNC_")
    }
    return environment if library is None else {**environment, "LD_PRELOAD": str(library)}


def check_free(host: str, port: int) -> None:
    """Raise `DaemonListenError` if `port` is in use or unusable on `host`; empty: any address."""
    try:
        addresses = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, address in addresses:
            _try_to_bind((family, kind, protocol), address, required=bool(host))
    except OSError as error:
        raise DaemonListenError(
            f"cannot listen on {host or '*'}:{port}: {error.strerror}",
            hint=_LISTEN_HINTS.get(error.errno or 0, "set fallback.address and fallback.port"),
        ) from error


def _try_to_bind(
    kind: tuple[int, int, int], address: tuple[object, ...], *, required: bool
) -> None:
    """Bind an address for a moment, or raise `OSError`; unless `required`, IPv6 may be missing."""
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
    """Let the kernel send this process SIGTERM when `parent` ends; end it if that has ended."""
    _prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    """Call prctl(2); raises `OSError`."""
    libc.call("prctl", option, ctypes.c_ulong(value), *[ctypes.c_ulong(0)] * 3)
