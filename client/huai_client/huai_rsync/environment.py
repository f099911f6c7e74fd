"""The environment variables of `huai-rsync`, and the meaning of its exit codes: tables.

Data only.  rsync's command line cannot have options of huai, so these are variables.
"""

from typing import Final, NamedTuple

from huai_schema.errors import ExitCode

EXPLAIN: Final = "HUAI_RSYNC_EXPLAIN"
FALLBACK: Final = "HUAI_RSYNC_FALLBACK"
DISCOVER: Final = "HUAI_RSYNC_DISCOVER"
UPSTREAM: Final = "HUAI_RSYNC_UPSTREAM"
COMPARE: Final = "HUAI_RSYNC_COMPARE"
ROOT: Final = "HUAI_CLIENT_ROOT"

COMPARE_USUAL: Final = "1d"

SETTINGS: Final = {
    EXPLAIN: "`yes`: say for every call why the real rsync runs; `no`: for none",
    FALLBACK: "`no`: an error where the metadata cannot be had, instead of the real rsync",
    DISCOVER: "`no`: use the modules of client.toml only, and ask no source for its metadata",
    UPSTREAM: "the metadata's base address, believed without asking the source for it; its module "
    "has the name of the source's last folder",
    COMPARE: "how often the whole tree is compared and repaired: `12h`, or `0` for each call; "
    f"`{COMPARE_USUAL}` unless set",
    ROOT: "the folder with client.toml and all state, as for `huai-client --root`",
}
"""The purpose of each variable, in Markdown, for huai-rsync(1)."""


class Ending(NamedTuple):
    """The exit code and text of rsync for one of huai's exit codes."""

    code: int
    text: str
    """rsync's text for the code (errcode.h, rerr_names)."""
    falls_back: bool = False
    """True if the real rsync runs instead, because it may succeed."""


_OK: Final = Ending(0, "")
_SYNTAX: Final = Ending(1, "syntax or usage error", falls_back=True)
_SELECTION: Final = Ending(3, "errors selecting input/output files, dirs", falls_back=True)
_START: Final = Ending(5, "error starting client-server protocol", falls_back=True)
_FILE_IO: Final = Ending(11, "error in file IO")
_PROTOCOL: Final = "error in rsync protocol data stream"
_SIGNAL: Final = Ending(20, "received SIGINT, SIGTERM, or SIGHUP")
_PARTIAL: Final = Ending(23, "some files/attrs were not transferred (see previous errors)")

ENDINGS: Final = {
    ExitCode.OK: _OK,
    ExitCode.USAGE: _SYNTAX,
    ExitCode.NETWORK: Ending(10, "error in socket IO", falls_back=True),
    ExitCode.FILE_IO: _FILE_IO,
    ExitCode.PARTIAL: _PARTIAL,
    ExitCode.VANISHED: Ending(24, "some files vanished before they could be transferred"),
    ExitCode.MAX_DELETE: Ending(25, "the --max-delete limit stopped deletions"),
    ExitCode.TIMEOUT: Ending(30, "timeout in data send/receive", falls_back=True),
    ExitCode.CONFIG: _SYNTAX,
    ExitCode.INCOMPLETE: _PARTIAL,
    ExitCode.EMPTY_ROOT: Ending(12, _PROTOCOL),
    ExitCode.LOCKED: _FILE_IO,
    ExitCode.FORMAT: Ending(12, _PROTOCOL, falls_back=True),
    ExitCode.UNKNOWN_MODULE: _START,
    ExitCode.ROLLED_BACK: Ending(12, _PROTOCOL),
    ExitCode.DIFFERS: _PARTIAL,
    ExitCode.MISMATCH: _PARTIAL,
    ExitCode.NO_SPACE: _FILE_IO,
    ExitCode.UNSOUND: Ending(11, _FILE_IO.text, falls_back=True),
    ExitCode.REQUIREMENT: Ending(14, "error in IPC code", falls_back=True),
    ExitCode.DESTINATION: _SELECTION,
    ExitCode.FALLBACK: _FILE_IO,
    ExitCode.STALE: _OK,
    ExitCode.UNWRITTEN: _OK,  # rsync ends with 0 too
    ExitCode.HOOK: _PARTIAL,  # never: no hook is run
    ExitCode.UNSIGNED: Ending(12, _PROTOCOL),  # plain rsync would accept unsigned content
    ExitCode.UNPROVED: _PARTIAL,
    ExitCode.DAMAGED: _FILE_IO,  # never: only an upstream scrubs
    ExitCode.INTERRUPTED: _SIGNAL,
    ExitCode.UNREAD: _OK,
    ExitCode.TERMINATED: _SIGNAL,
}
"""The code and text of rsync by huai's exit code."""
