"""The files of shards: a record with the result of each, its pack, and its digests.

A shard is a directory with everything below it, which one process scans.  Its files are named after
its path: in the folder of results `KEY.shard`, written last, and `KEY.began`, touched as long as
its process runs; in the folder of the module's shards `KEY/`, with its digests, which are a cache.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import msgspec

from huai_program.configuration import ConfigError
from huai_program.record_file import RecordFile
from huai_schema import __version__
from huai_server.commit.list_record import settings_of
from huai_server.config.tables import Module
from huai_server.state.errors import RequirementError
from huai_server.state.paths import ModulePlaces

RECORD, BEGAN = ".shard", ".began"
NO_BASE = "none"
"""The base of a first commit."""
_KEYS = "[0-9a-f]" * 32
_BEAT = 2.0
"""Seconds between two signs of life."""


class ShardRecord(msgspec.Struct, frozen=True):
    """The result of a scan of one shard; problems and the like are as of `_native.TreeReader`."""

    path: bytes
    base: str
    """The commit (hex id) whose entries stay where something cannot be read, or `NO_BASE`."""
    settings: str
    version: str
    run: str
    """The run that wanted it; empty for a command."""
    view: tuple[int, int]
    tree: bytes
    totals: tuple[int, int, int, int]
    skipped: int
    problems: list[tuple[bytes, int, int]]
    remarks: list[tuple[int, int, list[bytes]]]
    hashed: tuple[int, int, list[bytes]]
    mounts: list[bytes]
    open_groups: list[tuple[bytes, bytes]]
    pairs: bytes
    pack: str | None
    """The name of its pack, without suffix; None if all its objects were known."""
    node: str
    seconds: float

    @property
    def entries(self) -> int:
        """The number of its entries, its top included."""
        return sum(self.totals[:3])


SHARD_RECORD = RecordFile(ShardRecord)


def check_version(version: str, where: str = "the task") -> None:
    """Raise `RequirementError` for another version than this one; `where` begins the message."""
    if version != __version__:
        raise RequirementError(
            f"{where} was made by huai {version}, and this is {__version__}",
            hint="install one version on all nodes, and scan the shards again",
        )


def check_record(record: ShardRecord, base: str, module: Module) -> None:
    """Raise `RequirementError` for a record of another version of huai.

    Raises `ConfigError` for another base (a commit or `NO_BASE`) or other settings.
    """
    where = f"the result of {record.node} for {record.path!r}"
    check_version(record.version, where)
    for name, theirs, ours in (
        ("base", record.base, base),
        ("configuration", record.settings, settings_of(module)),
    ):
        if theirs != ours:
            raise ConfigError(
                f"{where} has another {name}: {theirs}, not {ours}",
                hint="scan the shards again, with this base and one server.toml",
            )


def shards_folder(module: Module, places: ModulePlaces) -> Path:
    """Return the folder for the shards of a module, which all nodes see."""
    share = module.engine.share
    return Path(share) / places.folder.name if share else places.folder / "shards"


def shard_key(path: bytes) -> str:
    """Return the name of the files of the shard at `path`, without suffix."""
    from hashlib import sha256  # commits from lists start without it

    return sha256(path).hexdigest()[:32]


def table_folders(module: Module, places: ModulePlaces) -> list[Path]:
    """Return the folders with the digests of the module's shards, of earlier cuts too."""
    folder = shards_folder(module, places)
    return sorted(folder.glob(_KEYS)) if folder.is_dir() else []  # to compile the pattern is slow


@contextmanager
def alive(sign: Path) -> Iterator[None]:
    """Touch the file `sign` at the beginning of the block, and every two seconds in it."""
    end = Event()

    def touch() -> None:
        while not end.wait(_BEAT):
            sign.touch()

    sign.touch()
    thread = Thread(target=touch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
