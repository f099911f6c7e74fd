"""What the last commits were made from: a record beside the repository.

A commit by lists says what lists name.  What they miss is found by the next commit that looks at
the whole tree; the record is what lets it say so, and says when there has to be one.

Rule: the record names the commit that it is about.  If that is not the newest, because a run was
killed in between or an older huai made it, nothing is known, and the next commit looks at all.
"""

from typing import NamedTuple

import msgspec

from huai_program.durations import seconds
from huai_program.record_file import RecordFile
from huai_server.config.tables import Module


class ListRecord(msgspec.Struct, frozen=True):
    """How the newest commit came to be."""

    commit: str
    """The newest commit, hex."""
    scanned: int
    """When the whole tree was looked at last, in seconds since the epoch."""
    lists: int
    """Commits by lists since then."""
    settings: str
    """What of the configuration says what is committed."""


LIST_RECORD = RecordFile(ListRecord, permissions=None)


def settings_of(module: Module) -> str:
    """What of a module's configuration says what is committed."""
    kept = (module.path, module.exclude, module.one_file_system, module.owners, module.digest)
    return msgspec.json.encode(kept).decode()


class ScanReason(NamedTuple):
    """Why a commit looks at the whole tree although it has lists."""

    text: str


def scan_reason(
    record: ListRecord | None, newest: str | None, module: Module, now: float
) -> ScanReason | None:
    """Why lists are not enough for the commit after `newest`; None: they are."""
    if newest is None:
        return ScanReason("there is no commit yet")
    if record is None or record.commit != newest:
        return ScanReason("no record says how the last commit was made")
    if record.settings != settings_of(module):
        return ScanReason("the configuration of the module changed")
    if module.audit and record.scanned + seconds(module.audit) <= now:
        return ScanReason(f'the last look at the whole tree is older than audit = "{module.audit}"')
    return None
