"""Committing a module: scan, compare with the last commit, write what changed.

Only composes.  Order of writes: objects, durable, as a pack; then the commit; the ref last.
A run killed anywhere leaves the last commit as it was, and at most an unused pack.

What is exported into the tree is written between the two, of what was scanned; then the tree is
scanned again, so that one commit has the lists that describe it.
"""

import os
import secrets
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from huai_native._native import PackWriter
from huai_schema.codec.commits import CommitInfo, Counts
from huai_schema.codec.descriptor import Descriptor, write_root
from huai_schema.codec.keys import ITEM as KEYS
from huai_schema.codec.signing import NAMESPACE, Promise
from huai_schema.diff.diff import count
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.layout import layout
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import show
from huai_schema.program.listing_hashes import listing_hash
from huai_schema.program.locking import locked
from huai_schema.program.packs import TEMPORARY
from huai_server.commit.digest.columns import DigestColumns, LargeFiles
from huai_server.commit.remarks import Remark
from huai_server.commit.tree_builder import TreeBuilder
from huai_server.config import Module
from huai_server.errors import storage_errors
from huai_server.paths import ModulePlaces
from huai_server.scan import scan_runs
from huai_server.scan.mounts import Mounts
from huai_server.scan.types import (
    Problem,
    Scanned,
    ScanOptions,
    root_error,
)
from huai_server.signing.keys import ServerKeys
from huai_server.store.block_indices import BlockIndices
from huai_server.store.repository import Head, Repository, Seal, StoreError
from huai_server.volatile import Volatile

_HASH_THREADS = 2 * (os.cpu_count() or 1)


class TreeExport(Protocol):
    """Writes files into the tree that the commit is to hold as well."""

    def prepare(self) -> None:
        """Before the tree is scanned."""
        ...

    def write(self, repository: Repository, scanned: Snapshot, size: int, time: int) -> bool:
        """Of what was scanned, `size` bytes of files, at `time`; whether the tree was changed."""
        ...


class EmptyRootError(HuaiError):
    """A tree with nothing in it: most likely a disk that is not mounted."""

    exit_code = ExitCode.EMPTY_ROOT


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What a commit did."""

    head: Head
    """The newest commit, made now or before."""
    changed: bool
    """Whether a commit was made; False: the tree is as it was."""
    counts: Counts
    problems: tuple[Problem, ...]
    """Paths that could not be looked at; their old entries stay."""
    remarks: tuple[Remark, ...]
    """What was left out on purpose, and what downstreams may have trouble with."""
    hashed_files: int
    hashed_bytes: int

    @property
    def exit_code(self) -> ExitCode:
        """How the program should end."""
        return ExitCode.INCOMPLETE if self.problems else ExitCode.OK


def commit_tree(  # noqa: PLR0913 (what is wanted, and on what terms)
    name: str,
    module: Module,
    places: ModulePlaces,
    *,
    keys: ServerKeys | None = None,
    allow_empty: bool = False,
    accept_mounts: bool = False,
    wait: float = 0,
    export: TreeExport | None = None,
) -> CommitResult:
    """Bring the metadata of a module up to date with its tree.

    Where a file system was mounted over a directory, or is not mounted any more, the old entries of
    the directory stay; with `accept_mounts` they are replaced by what is there now.  With `keys`
    the commit is signed, and made anew, with nothing else new in it, when half of the time for
    which the last signature holds is over.
    """
    root = Path(module.path)
    with storage_errors(places.folder):
        if not _is_directory(root):
            raise EmptyRootError(
                f"{root}: no such directory", hint="check that its file system is mounted"
            )
        places.folder.mkdir(parents=True, exist_ok=True)
        with locked(places.lock, wait=wait):
            repository = Repository.create(places.repository)
            repository.remove_unfinished()
            try:
                making = _Commit(name, module, places, repository, keys)
                return making.run(
                    root, export, allow_empty=allow_empty, accept_mounts=accept_mounts
                )
            except FormatError as error:
                # What a scan yields is always well-formed: this was read from the repository.
                raise StoreError(
                    f"{places.repository}: {error.message}",
                    hint=f"run: huai-server check {name}, which names what is damaged",
                ) from error


def _is_directory(root: Path) -> bool:
    try:
        return root.is_dir()
    except OSError as error:  # a directory above it cannot be entered
        raise root_error(root, error) from None


class _Commit:
    """One commit in the making."""

    def __init__(
        self,
        name: str,
        module: Module,
        places: ModulePlaces,
        repository: Repository,
        keys: ServerKeys | None,
    ) -> None:
        self._name = name
        self._keys = keys
        self._module = module
        self._places = places
        self._repository = repository
        self._head = repository.head()
        descriptor, past = repository.snapshot(self._head) if self._head else (None, None)
        # Made with the module's first commit.  A module that is made again gets another one.
        self._identity = (descriptor and descriptor.identity) or secrets.token_hex(16)
        self._past = past
        self._blocks = BlockIndices(repository.path)
        self._assembly = TreeBuilder(past, check_readable=module.check_readable)
        self._hashed_files = self._hashed_bytes = 0

    def run(
        self, root: Path, export: TreeExport | None, *, allow_empty: bool, accept_mounts: bool
    ) -> CommitResult:
        if export:
            export.prepare()
        tree, top = self._write(root, allow_empty=allow_empty, accept_mounts=accept_mounts)
        now = int(time.time())
        if export:
            scanned, size = Snapshot(self._repository, tree), self._assembly.totals.bytes
            if export.write(self._repository, scanned, size, now):
                self._assembly = TreeBuilder(self._past, check_readable=self._module.check_readable)
                tree, top = self._write(root, allow_empty=allow_empty, accept_mounts=accept_mounts)
        renewal = self._is_newest(top) and self._expires_soon()
        if self._is_newest(top) and not renewal:
            return self._result(Counts())
        counts = Counts() if renewal else self._counts(tree)
        serial = self._head.info.serial + 1 if self._head else 1
        info = CommitInfo(self._name, serial, self._assembly.totals, counts, self._assembly.skipped)
        head = self._repository.commit(
            *(top, info, self._head, self._module.retention), seal=self._seal(top), now=now
        )
        self._blocks.prune(Snapshot(self._repository, tree), time.time())
        return self._result(counts, head)

    def _write(self, root: Path, *, allow_empty: bool, accept_mounts: bool) -> tuple[bytes, bytes]:
        """Scan, and write what is new as a pack; the ids of the root's tree and the commit's."""
        writer = PackWriter(
            os.fsencode(self._repository.pack_folder),
            os.fsencode(TEMPORARY + secrets.token_hex(8)),
            threads=os.cpu_count() or 1,
        )
        mounts = Mounts(
            root,
            self._places.mounts,
            self._past,
            enter=not self._module.one_file_system,
            accept=accept_mounts,
        )
        try:
            scanned = self._scan(root, mounts)
            tree = layout.build(self._assembly.listings(scanned), writer)
            if not allow_empty:
                self._check_not_empty(root)
            mounts.write()
            others = {KEYS: self._keys.chain.encode()} if self._keys else {}
            top = write_root(self._descriptor(), tree, writer, others)
            if self._is_newest(top):
                writer.abort()
            else:
                writer.finish()
        except BaseException:
            writer.abort()
            raise
        return tree, top

    def _is_newest(self, top: bytes) -> bool:
        return self._head is not None and bytes.fromhex(self._head.tree) == top

    def _expires_soon(self) -> bool:
        """Whether the newest commit needs a new signature, though nothing else is new."""
        keys, head = self._keys, self._head
        if keys is None or head is None:
            return False
        return head.valid_until < time.time() + keys.validity / 2

    def _seal(self, top: bytes) -> Seal | None:
        keys = self._keys
        if keys is None:
            return None
        listing = listing_hash(self._places.listing_hashes, top, self._repository)
        promise = Promise(self._identity, int(time.time()) + keys.validity, listing)
        return Seal(promise, partial(keys.signer.sign, NAMESPACE))

    def _scan(self, root: Path, mounts: Mounts) -> Scanned:
        options = ScanOptions(
            one_file_system=self._module.one_file_system,
            owners=self._module.owners,
            exclude=tuple(os.fsencode(pattern) for pattern in self._module.exclude),
        )
        scanned = mounts.guard(scan_runs(root, options, mounts.watched))
        if self._module.digest == "off":
            yield from scanned
            return
        volatile = Volatile(self._module.volatile)
        large = LargeFiles(self._module.indexed, self._blocks.write)
        columns = DigestColumns(
            root,
            self._places.folder,
            _HASH_THREADS,
            volatile,
            large if self._module.indexed else None,
        )
        try:
            yield from columns.fill(scanned)
        finally:
            self._hashed_files += columns.hashed_files
            self._hashed_bytes += columns.hashed_bytes

    def _descriptor(self) -> Descriptor:
        module = self._module
        return Descriptor(
            self._name,
            module.content_urls,
            module.rules,
            self._identity,
            module.indexed,
            module.mirrors,
        )

    def _check_not_empty(self, root: Path) -> None:
        if self._assembly.totals.entries > 1:
            return
        if self._assembly.problems:
            path, reason, _ = self._assembly.problems[0]
            raise EmptyRootError(
                f"{root}: nothing in the tree could be read, for example {show(path)}: {reason}",
                hint="run the commit as the user that owns the tree",
            )
        raise EmptyRootError(
            f"{root}: the tree is empty",
            hint="check that its file system is mounted; --allow-empty commits an empty tree",
        )

    def _counts(self, tree: bytes) -> Counts:
        if self._past is None:
            return Counts(added=self._assembly.totals.entries)
        return count(self._past, Snapshot(self._repository, tree))

    def _result(self, counts: Counts, made: Head | None = None) -> CommitResult:
        """`made`: the new commit; None: the one before is the newest."""
        head = made or self._head
        assert head is not None  # noqa: S101 - without one there is always something to commit
        return CommitResult(
            head,
            made is not None,
            counts,
            tuple(self._assembly.problems),
            self._assembly.remarks.found(),
            self._hashed_files,
            self._hashed_bytes,
        )
