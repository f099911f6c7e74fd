"""How the tree of a module is read: what is looked at, and which content, as it is configured."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from huai_schema.errors import ExitCode, HuaiError
from huai_server.commit.digest.columns import DigestColumns, LargeFiles, ReadingPolicy
from huai_server.config.tables import Module
from huai_server.config.volatile import Volatile
from huai_server.scan.exclude import LEFT_OUT
from huai_server.scan.types import ScanOptions
from huai_server.state.paths import ModulePlaces
from huai_server.store import scrub_record
from huai_server.store.block_indices import BlockIndices

if TYPE_CHECKING:
    from huai_schema.paths import RelPath
    from huai_server.scan.types import Problem

_HASH_THREADS = 2 * (os.cpu_count() or 1)
_HOLES = 64 << 30
"""Bytes in holes of files that one commit hashes, in a minute or two.

Without a limit, who may write in the tree could keep it at work for hours with a file that takes no
room."""


class NoDigestsError(HuaiError):
    """The module is configured to have no digests."""

    exit_code = ExitCode.USAGE


def require_digests(name: str, module: Module) -> None:
    """Raise `NoDigestsError` for a module without digests."""
    if module.digest == "off":
        raise NoDigestsError(
            f'{name}: digest = "off" in server.toml: its files have no digests',
            hint='set digest = "now" or "later", and commit',
        )


def scan_options(module: Module) -> ScanOptions:
    """How the tree of a module is looked at."""
    return ScanOptions(
        one_file_system=module.one_file_system,
        owners=module.owners,
        exclude=(*LEFT_OUT, *map(os.fsencode, module.exclude)),
    )


def digest_columns(
    module: Module,
    places: ModulePlaces,
    blocks: BlockIndices,
    policy: ReadingPolicy,
) -> DigestColumns:
    """The digests of a module that has any."""
    large = LargeFiles(module.indexed, blocks.write)
    return DigestColumns(
        Path(module.path),
        places.folder,
        _HASH_THREADS,
        Volatile(module.volatile),
        large if module.indexed else None,
        policy,
    )


class CommitDigests:
    """The digests of one commit, whose tree may be looked at more than once."""

    def __init__(self, module: Module, places: ModulePlaces, blocks: BlockIndices) -> None:
        """Nothing is read before a look begins."""
        self._module = module
        self._places = places
        self._blocks = blocks
        self.hashed = (0, 0)
        """Files that were read, and bytes of them."""
        self.without_digest: dict[RelPath, Problem] = {}
        """Files that are committed as they are, but for their digests."""

    @contextmanager
    def look(self) -> Iterator[DigestColumns | None]:
        """The digests of one look at the tree, counted at its end; None: the module has none."""
        digest = self._module.digest
        if digest == "off":
            yield None
            return
        record = scrub_record.read_record(self._places.scrub)
        is_damage = record.is_damage if record.damage else None
        policy = ReadingPolicy(later=digest == "later", is_damage=is_damage, holes=_HOLES)
        columns = digest_columns(self._module, self._places, self._blocks, policy)
        yield columns
        files, size = self.hashed
        self.hashed = (files + columns.hashed_files, size + columns.hashed_bytes)
        self.without_digest |= {each.path: each for each in columns.without_digest}
