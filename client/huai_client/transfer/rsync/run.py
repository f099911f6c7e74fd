"""Runs one rsync: names in by a handle, progress out, and an end within limits.

Independent of batches.  Rule: a run has not ended before both of its pipes have, since rsync's
second process cleans up after the first has exited.
"""

import os
import re
import resource
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import NamedTuple

from huai_client.run.options import Deadline
from huai_client.transfer.errors import OutOfTimeError, RsyncRequirementError
from huai_client.transfer.limits import StallDetector, bytes_read
from huai_client.transfer.options import TransferOptionsError
from huai_client.transfer.rsync.confinement import Domain, run_in
from huai_client.transfer.rsync.output import RsyncOutput

_OLDEST = (3, 1)
_VERSION = re.compile(rb"^rsync +version +v?([0-9]+)\.([0-9]+)(?:\.([0-9]+))?", re.MULTILINE)
_VERSION_TIMEOUT = 30
_PIECE = 65_536
_TICK = 0.5
_LULL = 0.01
_GRACE = 10.0
_SYNTAX = 1
"""rsync's exit code for an unknown option."""
_HINT = "install rsync 3.1.3 or newer: apt-get install rsync, or as your system has it"


class Bounds(NamedTuple):
    """The limits of a run, independent of the other side."""

    file: int = 0
    """Largest size of a file that it writes, in bytes; 0 for any size."""
    total: int = 0
    """Bytes of all files together, and a little more; 0 for any number."""
    domain: Domain | None = None
    """The paths that it may use; None for those of this user."""
    own: bool = True
    """True if the URL is the administrator's own: else it gets no password."""


UNBOUND = Bounds()


class RsyncProcess:
    """One run of rsync; `wait` has to be called once; `stop` may be, in any thread."""

    def __init__(
        self,
        command: Sequence[bytes],
        *,
        names: bytes,
        folder: int,
        locks: Sequence[int],
        stall: StallDetector,
        bounds: Bounds = UNBOUND,
    ) -> None:
        """Start rsync in the directory of the handle `folder`; it holds `locks` till its end.

        `names` is its input.  Only within `wait` is it stopped if it stalls, or exceeds
        `bounds.total`.  Raises `RsyncRequirementError` if it cannot be started.
        """
        self.output = RsyncOutput()
        self.ended = False
        """True if no process of it is left that may write."""
        self._stall = stall
        self._bounds = bounds
        self._stopped = False
        listing = os.memfd_create("huai-names")
        try:
            with open(listing, "wb", closefd=False) as target:
                target.write(names)
            os.lseek(listing, 0, os.SEEK_SET)
            start = partial(
                subprocess.Popen[bytes],
                command,
                stdin=listing,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=f"/proc/self/fd/{folder}",
                env=_environment(own=bounds.own),
                pass_fds=locks,
                restore_signals=False,  # a file that grows too large is an error, not a signal
            )
            self._process = run_in(bounds.domain, start)
            if bounds.file:
                # Another process may have a lower hard limit, or be gone.
                with suppress(ProcessLookupError, PermissionError):
                    limit = (bounds.file, bounds.file)
                    resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, limit)
        except OSError as error:
            raise RsyncRequirementError(
                f"{os.fsdecode(command[0])} cannot be started: {error.strerror}", hint=_HINT
            ) from error
        finally:
            os.close(listing)

    def wait(self, progressed: Callable[[int], None]) -> int:
        """Read rsync's output until it ends; return its exit code, negative for a signal.

        Stops it if it stalls or sends too much: see `output`.  `progressed` is called at least
        twice a second, with the bytes of completed files so far.
        """
        try:
            with selectors.DefaultSelector() as pipes:
                self._listen(pipes, progressed)
        except BaseException:
            self.stop()
            raise
        finally:
            self._reap()
        code = self._process.poll()
        return -signal.SIGKILL if code is None else code

    def bytes_read(self) -> int | None:
        """Return the bytes that it has read, from network and disk; None if unknown."""
        return bytes_read(self._process.pid)

    def stop(self) -> None:
        """Terminate rsync, without waiting; it keeps its part of the file in flight."""
        self._stopped = True
        self._process.terminate()

    def _listen(self, pipes: selectors.BaseSelector, progressed: Callable[[int], None]) -> None:
        """Read output, and stop rsync if it stalls or sends too much; set `ended`."""
        for pipe, read in (
            (self._process.stdout, self.output.read_output),
            (self._process.stderr, self.output.read_errors),
        ):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                pipes.register(pipe, selectors.EVENT_READ, read)
        deadline = float("inf")
        while pipes.get_map() and time.monotonic() < deadline:
            for key, _ in pipes.select(_TICK):
                data = os.read(key.fd, _PIECE)
                key.data(data)
                if not data:
                    pipes.unregister(key.fileobj)
            progressed(self.output.progress)
            if self._bounds.total and self.output.progress > self._bounds.total:
                self.output.too_much = True
                self.stop()
            if not self._stopped and self._stall.stalled(self.bytes_read):
                self.output.trickles = True
                self.stop()
            time.sleep(_LULL)  # rsync reports every file; read many reports at once
            over = self._stopped or self._process.poll() is not None
            if over and deadline == float("inf"):
                deadline = time.monotonic() + _GRACE  # a helper of ssh may keep a pipe open
        self.ended = not pipes.get_map()

    def _reap(self) -> None:
        """Wait for its end, kill it if that takes too long, and close the pipes; set `ended`."""
        self.output.read_errors(b"\n")
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        if self._process.poll() is None:
            self.ended = False
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)  # may hang with its disk or file server
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


def _environment(*, own: bool = True) -> dict[str, str]:
    """Return this environment, with English messages and without variables for our options.

    A URL that is not the administrator's `own` gets no password.
    """
    dropped = {"RSYNC_PARTIAL_DIR", "RSYNC_ICONV", "RSYNC_PROTECT_ARGS", "RSYNC_OLD_ARGS"}
    if not own:
        dropped.add("RSYNC_PASSWORD")
    inherited = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**inherited, "LC_ALL": "C"}


def _run_version(program: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    """Run `program` with `options` and --version; raises `OSError` or `TimeoutExpired`."""
    return subprocess.run(
        [program, *options, "--version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_VERSION_TIMEOUT,
        env=_environment(),
        check=False,
    )


@lru_cache
def require_rsync(program: str) -> tuple[int, int, int]:
    """Return the version of `program`, which is run once.

    Raises `RsyncRequirementError` if it is missing, silent, not rsync, or too old.
    """
    try:
        printed = _run_version(program).stdout
    except OSError as error:
        raise RsyncRequirementError(
            f"{program} cannot be started: {error.strerror}", hint=_HINT
        ) from error
    except subprocess.TimeoutExpired as error:
        raise RsyncRequirementError(
            f"{program} does not answer to --version", hint=_HINT
        ) from error
    match = _VERSION.search(printed)
    if not match:
        raise RsyncRequirementError(f"{program} is not rsync", hint=_HINT)
    version = (int(match[1]), int(match[2]), int(match[3] or 0))
    if version[:2] < _OLDEST:
        raise RsyncRequirementError(
            f"{program} is version {version[0]}.{version[1]}, which is too old", hint=_HINT
        )
    return version


def check_options(program: str, options: Sequence[str]) -> None:
    """Raise `TransferOptionsError` if `program` runs, and does not know one of `options`."""
    try:
        done = _run_version(program, *options)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return  # `require_rsync` reports what is wrong with the program
    if done.returncode == _SYNTAX:
        message = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise TransferOptionsError(message, hint="see rsync(1) for its options")


class StoppedError(Exception):
    """Another thread ends the transfer; never leaves the package."""


class ProcessGroup:
    """The runs of a transfer, shared by all its streams, that one of these may stop together."""

    def __init__(self, deadline: Deadline) -> None:
        """No run begins after the `deadline`."""
        self._deadline = deadline
        self._over = threading.Event()
        self._guard = threading.Lock()
        self._running: set[RsyncProcess] = set()

    @property
    def over(self) -> bool:
        """True if `stop` was called."""
        return self._over.is_set()

    @property
    def late(self) -> bool:
        """True if the deadline has passed."""
        return self._deadline.over

    def check(self) -> None:
        """Raise `StoppedError` after `stop`."""
        if self.over:
            raise StoppedError

    def check_time(self) -> None:
        """Raise `StoppedError` after `stop`, `OutOfTimeError` after the deadline."""
        self.check()
        if self.late:
            raise OutOfTimeError

    def stop(self) -> None:
        """End all runs, and let no other begin."""
        self._over.set()
        with self._guard:
            for run in self._running:
                run.stop()

    def pause(self, seconds: float) -> None:
        """Sleep, unless `stop` is called or the deadline comes; then raise as `check_time` does."""
        self._over.wait(max(0.0, min(seconds, self._deadline.left)))
        self.check_time()

    @contextmanager
    def running(self, run: RsyncProcess) -> Iterator[RsyncProcess]:
        """Let `stop` end `run` within the block; at once if it was called already."""
        with self._guard:
            self._running.add(run)
        try:
            if self.over:
                run.stop()
            yield run
        finally:
            with self._guard:
                self._running.discard(run)
