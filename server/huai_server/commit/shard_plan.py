"""The directories that are scanned as shards: labelled ones, and large ones that are not too large.

Reads the last commit, or the names in the upper directories of a tree without one.  Shards of the
last commit by an engine are not counted again unless they changed since.
"""

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeAlias

from msgspec import Meta

from huai_native import _native
from huai_program.record_file import RecordFile
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RESERVED, ROOT, RelPath, ancestors, join, parent
from huai_server.commit.shard_record import ShardRecord
from huai_server.commit.tree_reader import scan_options
from huai_server.config.tables import Module
from huai_server.scan.types import root_error

_Id: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{40}$")]
_Entries: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
_COUNTS = RecordFile(dict[_Id, _Entries], needed=False, durable=False)
"""The entries of trees, whose ids are in hex: a cache."""
_NAME = "counts"
_FIRST, _MOST = 64, 1000
"""The shards of a first commit that are enough, and the most of them."""


def plan_shards(past: Snapshot | None, module: Module, folder: Path) -> dict[bytes, int]:
    """Return the paths of the shards with their entries, which are 0 before the first commit.

    From the top down, a directory is cut into its subdirectories until it has at most
    `shard_entries`; far smaller ones are no shards.  A tree of at most so many has no shards.
    Before the first commit, level by level, all are cut until they are many; raises `ScanError` if
    the root cannot be read.  A labelled directory of the commit or the tree is a shard, and those
    above it are cut.  `folder` is that of the module's shards.
    """
    labelled = [
        path
        for path in map(RelPath, module.engine.labels)
        if _may_exist(module, path) or (past and past.listing(path))
    ]
    new: dict[bytes, int] = dict.fromkeys(labelled, 0)
    if past is None:
        return new | dict.fromkeys(_first_shards(module, labelled), 0)
    record = _COUNTS.load(folder / _NAME) or {}
    counts = {bytes.fromhex(tree): entries for tree, entries in record.items()}
    most = module.engine.shard_entries
    return new | dict(_native.plan_shards(past.arguments, most, counts, labelled))


def keep_counts(folder: Path, records: Iterable[ShardRecord]) -> None:
    """Keep the entries of the shards of a commit for the next plan, if they can be written."""
    with suppress(OSError):
        _COUNTS.save(folder / _NAME, {each.tree.hex(): each.entries for each in records})


def _may_exist(module: Module, path: RelPath) -> bool:
    """Return True if a scan finds the directory at `path`, or cannot read one above it."""
    paths = [path, *ancestors(path)[:-1]]
    try:
        return all(each in _subdirectories(module, parent(each)) for each in paths)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _first_shards(module: Module, labelled: Collection[bytes]) -> list[bytes]:
    """Return the paths of a level of directories, with those above it that have none in them.

    Leaves out `labelled` ones, and cuts those above them.  Raises `ScanError` if the root cannot be
    read.
    """
    try:
        shards = _subdirectories(module, ROOT)
    except OSError as error:
        raise root_error(Path(module.path), error) from error
    for above in sorted({above for path in labelled for above in ancestors(path)}):
        if above in shards:
            shards.remove(above)
            shards += _subdirectories_or_none(module, above)
    shards = level = [path for path in shards if path not in labelled]
    while level and len(shards) < _FIRST:
        below = {path: _subdirectories_or_none(module, path) for path in level}
        level = [path for paths in below.values() for path in paths]
        cut = sorted([*(path for path in shards if not below.get(path)), *level])
        if len(cut) > _MOST:
            break
        shards = cut
    return shards


def _subdirectories_or_none(module: Module, above: bytes) -> list[bytes]:
    """Return those of a directory that may vanish, or be unreadable: its scan says so."""
    try:
        return _subdirectories(module, above)
    except OSError:
        return []


def _subdirectories(module: Module, above: bytes) -> list[bytes]:
    """Return the paths of the directories in `above` that a scan does not leave out, sorted."""
    left_out = [(each, False, True, True, False) for each in scan_options(module).exclude]
    filter_ = _native.Filter(left_out)
    with os.scandir(os.path.join(os.fsencode(module.path), above)) as entries:
        names = [each.name for each in entries if each.is_dir(follow_symlinks=False)]
    paths = sorted(join(above, each) for each in names if each.lower() != RESERVED)
    return [path for path in paths if filter_.reaches(path, directory=True)]
