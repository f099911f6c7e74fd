"""The record of the last list of an upstream that does not run huai.

It stands in the folder of the module's repository, and goes with it: without it the whole tree is
listed again.
"""

from pathlib import Path

import msgspec

from huai_client.metadata.source.recent import RecentMark
from huai_program.record_file import RecordFile

RECORD_NAME = "source"
LIST_NAME = "source-list"
"""The published list that the commit was made from."""


class SourceRecord(msgspec.Struct, frozen=True):
    """The last list, and the commit of it."""

    url: str
    commit: str
    """Its hex id."""
    listed: float
    """Seconds since the epoch at which the list was begun."""
    probes: tuple[str, ...] = ()
    """The paths of files that show by their times whether anything is new."""
    state: str = ""
    """Their attributes, or the validator of a list on a web server; empty without either."""
    published: str = ""
    """The path of the published list; empty without one."""
    has_links: bool = True
    """False if no file of the commit has several names."""
    all_listed: float = 0.0
    """Seconds since the epoch at which the last list of the whole tree was begun."""
    mark: RecentMark | None = None
    """The newest event that the commit has; None without events."""
    problem: str = ""
    """Says what the upstream could not list; empty if it could list all."""

    @property
    def outdated(self) -> "SourceRecord":
        """The record, with the mark that the upstream has to be listed again."""
        return msgspec.structs.replace(self, state="", listed=0.0)


_FILE = RecordFile(SourceRecord, needed=False, durable=False)


def load_record(repository: Path, url: str) -> SourceRecord | None:
    """Return the record of the last list; None unless it is of `url`, a `source_name`."""
    record = _FILE.load(repository / RECORD_NAME)
    return record if record is not None and record.url == url else None


def list_problem(repository: Path) -> str:
    """Return what the upstream could not list; empty without a list, or if it could list all."""
    record = _FILE.load(repository / RECORD_NAME)
    return record.problem if record is not None else ""


def save_record(repository: Path, record: SourceRecord) -> None:
    """Replace the record; after a power failure it may be missing, or an older one."""
    _FILE.save(repository / RECORD_NAME, record)
