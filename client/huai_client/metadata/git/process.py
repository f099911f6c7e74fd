"""A process whose cost is limited, whatever the other side sends.

The kernel limits the file size, memory and CPU time of each process of its group.  The group is
ended by silence, a trickle, output without a pack, the deadline, and an exception in this process.
"""

import os
import resource
import selectors
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from huai_client.metadata.curl.exchange import LATE, LONGEST, MINIMUM_RATE
from huai_client.metadata.git.limits import MEMORY_BYTES, PROCESSOR_SECONDS, REPLY_BYTES, TALK_BYTES
from huai_client.run.options import Deadline
from huai_program.programs import started
from huai_schema.errors import FormatError

_LIMITS = (
    (resource.RLIMIT_FSIZE, REPLY_BYTES),
    (resource.RLIMIT_DATA, MEMORY_BYTES),
    (resource.RLIMIT_CPU, PROCESSOR_SECONDS),
)
_PIECE = 65_536
_TICK = 0.1
_LAST_BYTES = 8192
"""Bytes of standard error that are kept."""


class BoundedProcess:
    """A process that is run once, within limits on time, memory, output and silence."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """`command` and `environment` are all that the process gets."""
        self._command, self._environment = command, environment
        self._output, self._errors = bytearray(), bytearray()
        self.code = 0
        """The exit code; negative for the signal that ended it."""

    @property
    def output(self) -> bytes:
        """All of its standard output."""
        return bytes(self._output)

    @property
    def errors(self) -> bytes:
        """The end of its standard error."""
        return bytes(self._errors)

    def run(self, timeout: float, deadline: Deadline, received: Callable[[], int]) -> None:
        """Run to the end, and set `code`.

        Raises `TimeoutError`, `TimeUpError`, or `FormatError` for much other output.

        `received` counts the bytes of packs so far.  `timeout` (s) limits each pause without
        output, and the whole run, to which each `MINIMUM_RATE` bytes add a second.
        """
        deadline.check(LATE)
        with started(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd="/",
            env=self._environment,
            restore_signals=False,  # a file that grows too large is an error, not a signal
            preexec_fn=_limiter(),
        ) as process:
            self._listen(process, timeout, deadline, received)
        self.code = process.returncode

    def _listen(
        self,
        process: subprocess.Popen[bytes],
        timeout: float,
        deadline: Deadline,
        received: Callable[[], int],
    ) -> None:
        """Collect output until the process ends; parameters and errors are those of `run`."""
        began = last_output = time.monotonic()
        printed = packed = 0
        with selectors.DefaultSelector() as selector:
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    selector.register(pipe, selectors.EVENT_READ)
            while selector.get_map():
                ended = process.poll() is not None
                ready = selector.select(0 if ended else _TICK)
                if ended and not ready:
                    return  # a helper of ssh may keep a pipe open
                for key, _ in ready:
                    piece = os.read(key.fd, _PIECE)
                    if not piece:
                        selector.unregister(key.fileobj)
                    printed, last_output = printed + len(piece), time.monotonic()
                    self._append(piece, errors=key.fileobj is process.stderr)
                packed = max(packed, received())
                if printed > 2 * packed + TALK_BYTES:
                    raise FormatError("a reply with more other output than pack")
                deadline.check(LATE)
                _check_time(began, last_output, timeout, packed)

    def _append(self, piece: bytes, *, errors: bool) -> None:
        """Add output, or errors, of which only the last bytes are kept."""
        if errors:
            self._errors = (self._errors + piece)[-_LAST_BYTES:]
        else:
            self._output += piece


def _check_time(began: float, last_output: float, timeout: float, received: int) -> None:
    """Raise `TimeoutError` after `timeout` seconds of silence, or a trickle.

    `began`, `last_output`: of the monotonic clock; `received`: bytes of packs so far.
    """
    now = time.monotonic()
    if now - last_output >= timeout:
        raise TimeoutError
    if now - began >= min(timeout + received / MINIMUM_RATE, LONGEST):
        raise TimeoutError("sends too slowly")


def _limiter() -> Callable[[], None]:
    """Return a function that sets the limits of a new process, within those of this one."""
    limits = []
    for kind, value in _LIMITS:
        hard = resource.getrlimit(kind)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        limits.append((kind, (least, least)))

    def limit() -> None:
        for kind, pair in limits:
            resource.setrlimit(kind, pair)

    return limit
