"""How the last commits were made: a record next to the repository.

A commit by lists records only the listed paths.  The next scan of the whole tree finds what they
missed; this record lets it report that, and says when such a scan is due.

Rule: the record names its commit.  If that is not the newest, because a run was killed in between
or an older huai made it, the record is useless, and the next commit scans everything.
"""

import msgspec

from huai_program.durations import seconds
from huai_program.record_file import RecordFile
from huai_server.config.tables import Module

_KEYS = {"scan_time": "scanned", "commits_by_lists": "lists"}
"""The keys of the file, which older records have too."""


class ListRecord(msgspec.Struct, frozen=True, rename=_KEYS):
    """The way in which the newest commit was made."""

    commit: str
    scan_time: int
    """The time of the last whole scan, in seconds since the epoch."""
    commits_by_lists: int
    """The number of commits by lists since then."""
    settings: str


LIST_RECORD = RecordFile(ListRecord, permissions=None)


def settings_of(module: Module) -> str:
    """Return the settings of a module that decide what is committed, as JSON to compare."""
    deciding = (module.path, module.exclude, module.one_file_system, module.owners, module.digest)
    return msgspec.json.encode(deciding).decode()


def scan_reason(record: ListRecord | None, newest: str | None, module: Module, now: float) -> str:
    """Return why lists are not enough for the commit after `newest` (hex id); empty if they are.

    `now` is in seconds since the epoch.
    """
    if newest is None:
        return "this is the first commit"
    if record is None or record.commit != newest:
        return "the record of the last commit is missing"
    if record.settings != settings_of(module):
        return "the configuration of the module changed"
    if module.audit and record.scan_time + seconds(module.audit) <= now:
        return f'the last scan of the whole tree is older than audit = "{module.audit}"'
    return ""
