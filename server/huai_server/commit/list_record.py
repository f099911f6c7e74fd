"""What the last commits were made from: a record beside the repository.

A commit by lists says what lists name.  What they miss is found by the next commit that looks at
the whole tree; the record is what lets it say so, and says when there has to be one.

Rule: the record names the commit that it is about.  If that is not the newest, because a run was
killed in between or an older huai made it, nothing is known, and the next commit looks at all.
"""

from pathlib import Path
from typing import NamedTuple

import msgspec

from huai_program.durable import replace_file
from huai_program.packs import TEMPORARY
from huai_program.spans import seconds
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


def read_record(path: Path) -> ListRecord | None:
    """The record; None if there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ListRecord)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def write_record(path: Path, record: ListRecord) -> None:
    """Replace the record in one durable step."""
    replace_file(path, msgspec.json.encode(record) + b"\n", path.with_name(TEMPORARY + path.name))


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
