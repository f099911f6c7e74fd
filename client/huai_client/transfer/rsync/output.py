"""Parses the output of a running rsync.

Pure.  The text is partly the upstream's: its length is limited, and control characters never reach
a terminal.
"""

import re
from collections import deque
from collections.abc import Iterable

from huai_schema.paths import RelPath, show

_PROGRESS = re.compile(rb"^ *([0-9]{1,19}) +[0-9]+% (?:.*\(xfr#([0-9]{1,9}),)?")
_RECEIVED = re.compile(rb"^Total bytes received: ([0-9]{1,19})$")
_TOO_LARGE = re.compile(rb"^(?:\./)?(.+) is over max-size$", re.DOTALL)
_OCTAL = re.compile(rb"\\#([0-3][0-7]{2})")
"""rsync's escape for a byte that is not printable."""
_TOO_MUCH = re.compile(rb"\(27\)$")  # EFBIG
_NO_ROOM = re.compile(rb"\((?:28|122)\)$")  # ENOSPC, EDQUOT
_LOCAL = re.compile(rb"^rsync(?: error)?: (?:\[(?:receiver|generator|Receiver)\] )?(.*)$")
_WRITING = re.compile(
    rb"(?:write failed on|mkstemp|open|rename|f?stat|ftruncate failed|fsync failed|close failed|"
    rb"recv_generator:|failed to (?:set|modify)|mkdir|make_path)\b.*\([0-9]+\)$"
)
_UNREADABLE = re.compile(
    rb"^rsync: (?:\[sender\] )?(?:send_files failed to open|link_stat|readlink_stat|opendir) "
    rb'"(.+)"(?: \(in [^"]*\))?(?: failed)?: Permission denied \(13\)$'
)
_NAMES_KEPT = 10_000
_REFUSES = b"rsync: The server is configured to refuse "
_RESET = b" Connection reset by peer (104)"
_DENIALS = (b"@ERROR", _REFUSES)
_PROMPT = b"Password: "
"""The daemon's message follows this prompt if there was no password."""
_LINE_MAX = 16_384
_REPORTS = 3
"""The reports of progress that are read of many in one line: rsync writes one for each file."""
_LINES_KEPT = 20
_SHOWN = 500


class RsyncOutput:
    """The output of one run of rsync so far."""

    def __init__(self) -> None:
        self.progress = 0
        """Bytes of the completed files of this run."""
        self.files = 0
        """Files of this run that were transferred completely."""
        self.received = 0
        """Bytes over the wire; 0 until a run has ended with its statistics."""
        self.full = False
        """The daemon serves as many clients as it may."""
        self.denied = False
        """The daemon refused in another way."""
        self.refused = ""
        """The option that the daemon refuses."""
        self.dropped = False
        """The other side has reset the connection."""
        self.no_room = False
        """The local file system is full."""
        self.unwritable = False
        """The local file system refused another operation."""
        self.too_much = False
        """The other side sends more than was announced."""
        self.too_large: set[bytes] = set()
        """Files that are larger upstream than announced, and were skipped."""
        self.trickles = False
        """The run was stopped here, because next to nothing arrived."""
        self.unverified = False
        """rsync itself has detected that a file did not arrive as sent."""
        self._unreadable: list[bytes] = []
        self._complaints: deque[bytes] = deque(maxlen=_LINES_KEPT)
        self._out = b""
        self._err = b""

    def read_output(self, data: bytes) -> None:
        """Parse a piece of standard output; of progress reports in a row, only the last ones."""
        *lines, last = (self._out + data).split(b"\n")
        reports, _, rest = last.rpartition(b"\r")
        for line in (*lines, reports):
            for text in line.rsplit(b"\r", _REPORTS)[-_REPORTS:]:
                self._read_line(text)
        self._out = rest[:_LINE_MAX]

    def _read_line(self, line: bytes) -> None:
        """Note progress and totals from a line of rsync's output."""
        if match := _PROGRESS.match(line):
            self.progress = int(match[1])
            self.files = int(match[2] or self.files)
        elif match := _RECEIVED.match(line):
            self.received = int(match[1])
        elif match := _TOO_LARGE.match(line):
            self.too_large.add(_unescape(match[1]))

    def read_errors(self, data: bytes) -> None:
        """Read a piece of standard error."""
        *lines, self._err = (self._err + data).split(b"\n")
        self._err = self._err[:_LINE_MAX]
        for line in lines:
            self._read_complaint(line.rstrip(b"\r"))

    def _read_complaint(self, line: bytes) -> None:
        """Note the cause in a line of rsync's errors."""
        line = line.removeprefix(_PROMPT)
        if line.startswith(b"@ERROR: max connections"):
            self.full = True
        elif line.startswith(_DENIALS):
            self.denied = True
            if line.startswith(_REFUSES):
                option = line.removeprefix(_REFUSES).partition(b" ")[0]
                self.refused = option.decode("ascii", "replace")
        elif (unreadable := _UNREADABLE.match(line)) and len(self._unreadable) < _NAMES_KEPT:
            self._unreadable.append(_unescape(unreadable[1]))
        elif (local := _LOCAL.match(line)) and _WRITING.match(local[1]):
            self.too_much |= _TOO_MUCH.search(line) is not None
            self.no_room |= _NO_ROOM.search(line) is not None
            self.unwritable = True
        if line.endswith(_RESET):
            self.dropped = True
        if b" failed verification -- " in line:
            self.unverified = True
        if line:
            self._complaints.append(line)

    def denied_of(self, paths: Iterable[RelPath]) -> set[RelPath]:
        """Return the `paths` that the sender may not read, by its own report.

        It names them as it sees them, below a folder that is not known here.
        """
        if not self._unreadable:
            return set()
        requested = set(paths)
        denied: set[RelPath] = set()
        for name in self._unreadable:
            rest = RelPath(name.lstrip(b"/"))
            while rest and rest not in requested:
                rest = RelPath(rest.partition(b"/")[2])
            denied.add(rest)
        return denied & requested

    def summary(self) -> str:
        """Return the most relevant line, for people."""
        if not self._complaints:
            return "rsync printed no message"
        denials = [line for line in self._complaints if line.startswith(_DENIALS)]
        causes = [line for line in self._complaints if not line.startswith(b"rsync error:")]
        return show((denials or causes or [*self._complaints])[-1][:_SHOWN])


def _unescape(name: bytes) -> bytes:
    return _OCTAL.sub(lambda code: bytes((int(code[1], 8),)), name)
