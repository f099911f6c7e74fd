"""The files of shards: a record with the result of each, its pack, and its digests.

A shard is a directory with everything below it, which one process scans.  Its files are named after
its path: in the folder of results `KEY.shard` and `KEY.began` (`huai_program.engine.signs`); in the
folder of the module's shards `KEY/`, with its digests, which are a cache.
"""

from pathlib import Path

import msgspec

from huai_program.configuration import ConfigError
from huai_program.engine.signs import check_version
from huai_program.record_file import RecordFile
from huai_server.commit.list_record import settings_of
from huai_server.config.tables import Module, ModuleEngine
from huai_server.state.paths import ModulePlaces

NO_BASE = "none"
"""The base of a first commit."""
_KEYS = "[0-9a-f]" * 32


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


def check_record(record: ShardRecord, base: str, module: Module) -> None:
    """Raise `EngineError` for a record of another version of huai.

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


def labels_at(url: str, configured: ModuleEngine) -> dict[bytes, str]:
    """Return the labels of directories that count for the engine at `url`: a cluster of Dask."""
    return configured.labels if url.startswith("dask://") and url != "dask://" else {}


def shard_key(path: bytes) -> str:
    """Return the name of the files of the shard at `path`, without suffix."""
    from hashlib import sha256  # commits from lists start without it

    return sha256(path).hexdigest()[:32]


def table_folders(module: Module, places: ModulePlaces) -> list[Path]:
    """Return the folders with the digests of the module's shards, of earlier cuts too."""
    folder = shards_folder(module, places)
    return sorted(folder.glob(_KEYS)) if folder.is_dir() else []  # to compile the pattern is slow
