"""Committing a module: look at the tree, compare with the last commit, write what changed.

The whole tree is scanned, or only what lists name is looked at (`listed`).  Only composes.

Order of writes: objects, durable, as a pack; then the groups of hardlinks; then the commit; the
ref; and the record of how it was made last.  A run killed anywhere leaves the last commit as it
was, and at most an unused pack; or the new one without that record: then lists are not enough for
the next.

What is exported into the tree is written before the commit, of what was scanned; then its files are
looked at, as if a list named them, so that one commit has the lists that describe it.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from huai_native._native import PackWriter
from huai_schema.codec.commits import CommitInfo, Counts, Totals
from huai_schema.codec.descriptor import Descriptor, write_root
from huai_schema.codec.keys import ITEM as KEYS
from huai_schema.codec.listing import Listing
from huai_schema.codec.signing import NAMESPACE, Promise
from huai_schema.diff.diff import count, diff
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.layout import layout
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, parent, show
from huai_schema.program.listing_hashes import listing_hash
from huai_schema.program.locking import locked
from huai_schema.program.packs import TEMPORARY, remove_pack
from huai_server.commit.change_lists import ChangeLists, list_of
from huai_server.commit.digest.columns import DigestColumns, LargeFiles, ReadingPolicy
from huai_server.commit.link_record import LinkRecord
from huai_server.commit.list_record import (
    ListRecord,
    read_record,
    scan_reason,
    settings_of,
    write_record,
)
from huai_server.commit.listed import Listing as MadeFrom
from huai_server.commit.listed import ListsNotEnoughError, build_listed
from huai_server.commit.remarks import Remarks
from huai_server.commit.result import (
    USUAL,
    AuditResult,
    CommitOptions,
    CommitResult,
    ListedResult,
)
from huai_server.commit.tree_builder import TreeBuilder
from huai_server.config import Module
from huai_server.errors import storage_errors
from huai_server.paths import ModulePlaces
from huai_server.scan import scan_runs
from huai_server.scan.exclude import LOCK_FILES
from huai_server.scan.mounts import Mounts
from huai_server.scan.root import EmptyRootError, empty_root, holds_anything
from huai_server.scan.types import (
    Problem,
    Scanned,
    ScanOptions,
    root_error,
)
from huai_server.store import scrub_record
from huai_server.store.block_indices import BlockIndices
from huai_server.store.repository import Head, Repository, Seal, StoreError
from huai_server.volatile import Volatile

if TYPE_CHECKING:
    from huai_server.signing.keys import ServerKeys

_Result = TypeVar("_Result")
_HASH_THREADS = 2 * (os.cpu_count() or 1)


_NO_CHANGE = Counts()
_AHEAD_SECONDS = 3600
"""By so much the clocks of two machines may differ."""
_SHOWN = 20
"""Differences that an audit names."""


class TreeExport(Protocol):
    """Writes files into the tree that the commit is to hold as well."""

    def prepare(self) -> None:
        """Before the tree is scanned."""
        ...

    @property
    def files(self) -> Collection[RelPath]:
        """All that it may write."""
        ...

    def write(self, repository: Repository, scanned: Snapshot, size: int, time: int) -> bool:
        """Of what was scanned, `size` bytes of files, at `time`; whether the tree was changed."""
        ...


class NoCommitError(HuaiError):
    """A module without a commit."""

    exit_code = ExitCode.USAGE


def commit_tree(
    name: str,
    module: Module,
    places: ModulePlaces,
    options: CommitOptions = USUAL,
    *,
    keys: "ServerKeys | None" = None,
    export: TreeExport | None = None,
) -> CommitResult:
    """Bring the metadata of a module up to date with its tree.

    Where a file system was mounted over a directory, or is not mounted any more, the old entries of
    the directory stay; with `accept_mounts` they are replaced by what is there now.  With `keys`
    the commit is signed, and made anew, with nothing else new in it, when half of the time for
    which the last signature holds is over.
    """
    root = Path(module.path)
    lists = options.lists(root) if options.lists else None

    def work(making: _Commit) -> CommitResult:
        if lists is None:
            return making.scan(root, options, export)
        return making.take(root, lists, options, export)

    return _with_module((name, module, places), keys, options.wait, work)


def audit_tree(name: str, module: Module, places: ModulePlaces, wait: float = 0) -> AuditResult:
    """In what the tree differs from the last commit; nothing is committed."""

    def work(making: _Commit) -> AuditResult:
        return making.audit(Path(module.path))

    return _with_module((name, module, places), None, wait, work)


def commit_digests(
    name: str,
    module: Module,
    places: ModulePlaces,
    fill: Callable[[Snapshot], Iterable[Listing]],
    *,
    keys: "ServerKeys | None",
    wait: float,
) -> CommitResult:
    """Commit the newest snapshot with the digests that `fill` adds, and as it is else."""

    def work(making: _Commit) -> CommitResult:
        return making.add_digests(fill)

    return _with_module((name, module, places), keys, wait, work)


def _with_module(
    which: tuple[str, Module, ModulePlaces],
    keys: "ServerKeys | None",
    wait: float,
    work: Callable[["_Commit"], _Result],
) -> _Result:
    """Work with a module that nobody else commits meanwhile."""
    name, module, places = which
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
                return work(_Commit(name, module, places, repository, keys))
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
        keys: "ServerKeys | None",
    ) -> None:
        self._name = name
        self._keys = keys
        self._module = module
        self._places = places
        self._repository = repository
        self._head = repository.head()
        descriptor, past = repository.snapshot(self._head) if self._head else (None, None)
        # Made with the module's first commit.  A module that is made again gets another one.
        self._identity = (descriptor and descriptor.identity) or os.urandom(16).hex()
        self._past = past
        self._blocks = BlockIndices(repository.path)
        self._record = read_record(places.lists)
        self._links = LinkRecord(places.hardlinks)
        self._assembly = self._builder()
        self._hashed = (0, 0)

    def take(
        self,
        root: Path,
        lists: ChangeLists,
        options: CommitOptions,
        export: TreeExport | None = None,
    ) -> CommitResult:
        """Commit what lists name; or the whole tree, if there is a reason."""
        newest = self._head.commit if self._head else None
        reason = scan_reason(self._record, newest, self._module, time.time())
        said = reason.text if reason else ""
        if export and not said:
            _prepare(root, options, export)
            said = self._unseen_directory(root, export.files)
        if not said:
            try:
                return self._take(root, lists, export, allow_empty=options.allow_empty)
            except ListsNotEnoughError as error:
                said = str(error)
        result = self.scan(root, options, export)
        return replace(result, listed=ListedResult(lists, said, 0, ()))

    def _unseen_directory(self, root: Path, files: Collection[RelPath]) -> str:
        """Why files in it cannot be committed by a list; empty: there is no such directory."""
        assert self._past is not None  # noqa: S101 - there is a reason to scan if there is none
        for path in {parent(path) for path in files}:
            if self._past.directory(path) is None and os.path.isdir(
                os.path.join(bytes(root), path)
            ):
                return f"the export's directory {show(path)} is new"
        return ""

    def _take(
        self, root: Path, lists: ChangeLists, export: TreeExport | None, *, allow_empty: bool
    ) -> CommitResult:
        assert self._head is not None  # noqa: S101 - there is a reason to scan if there is none
        assert self._past is not None  # noqa: S101 - the same
        assert self._record is not None  # noqa: S101 - the same
        if not allow_empty and not holds_anything(root):
            raise empty_root(root)
        columns = self._columns()
        remarks = Remarks(check_readable=self._module.check_readable)
        made_from = MadeFrom(
            root, scan_options(self._module), self._past, self._head.info.totals, self._places
        )
        with self._writing() as writer:
            found = build_listed(made_from, lists, columns, remarks, writer)
            other = bool(lists.paths) and found.unknown == lists.paths
            if other:  # the lists of another tree
                writer.abort()
                top = None
            else:
                top = self._finish(found.tree, writer)
        now = int(time.time())
        self._count_hashed(columns)
        self._links.extend(found.pairs)
        tree, totals, problems = found.tree, found.totals, found.problems
        if export and not other:
            # Always: an export that was killed, or made by itself, left files that no list names.
            export.write(self._repository, Snapshot(self._repository, tree), totals.bytes, now)
            tree, top, totals, again = self._look_again(root, tree, totals, export.files)
            problems = _joined(problems, again)
        head, counts = self._head, _NO_CHANGE
        if top is not None:
            counts = count(self._past, Snapshot(self._repository, tree))
            head = self._commit(top, totals, counts, self._head.info.skipped, now)
        self._note(head, scanned=self._record.scanned, lists=self._record.lists + 1)
        listed = ListedResult(lists, "", found.unknown, found.first_unknown)
        seen = remarks.found()
        changed = top is not None
        return CommitResult(head, changed, counts, problems, seen, *self._hashed, listed)

    def scan(
        self, root: Path, options: CommitOptions, export: TreeExport | None = None
    ) -> CommitResult:
        """Commit the whole tree."""
        if export:
            _prepare(root, options, export)
        started = int(time.time())
        tree, top = self._write(root, options)
        now = int(time.time())
        totals, problems = self._assembly.totals, tuple(self._assembly.problems)
        exported: Collection[RelPath] = ()
        if export:
            scanned = Snapshot(self._repository, tree)
            if export.write(self._repository, scanned, totals.bytes, now):
                exported = export.files
        self._places.lists.unlink(missing_ok=True)
        self._links.replace()
        if exported:
            try:
                tree, top, totals, found = self._look_again(root, tree, totals, exported)
            except ListsNotEnoughError:  # a file system came or went meanwhile
                self._links.abort()
                self._assembly = self._builder()
                return self.scan(root, options)
            problems = _joined(problems, found)
        head, counts = self._head, _NO_CHANGE
        if top is not None:
            counts = self._counts(tree, totals)
            head = self._commit(top, totals, counts, self._assembly.skipped, now)
            self._blocks.prune(Snapshot(self._repository, tree), time.time())
        assert head is not None  # noqa: S101 - without one the tree is new
        self._note(head, scanned=started, lists=0)
        remarks = self._assembly.remarks.found()
        missed = self._missed(counts)
        changed = top is not None
        return CommitResult(head, changed, counts, problems, remarks, *self._hashed, missed=missed)

    def _look_again(
        self, root: Path, tree: bytes, totals: Totals, paths: Collection[RelPath]
    ) -> tuple[bytes, bytes | None, Totals, tuple[Problem, ...]]:
        """What was scanned, with what stands at `paths` now: its tree, `_finish`, and problems.

        Remarks are left to the scan: nobody else writes these files.
        """
        scanned = Snapshot(self._repository, tree)
        made_from = MadeFrom(root, scan_options(self._module), scanned, totals, self._places)
        columns = self._columns()
        with self._writing() as writer:
            found = build_listed(made_from, list_of(root, paths), columns, Remarks(), writer)
            top = self._finish(found.tree, writer)
        self._count_hashed(columns)
        self._links.extend(found.pairs)
        return found.tree, top, found.totals, found.problems

    def _write(self, root: Path, options: CommitOptions) -> tuple[bytes, bytes | None]:
        """Scan, and write what is new as a pack; the root directory's tree, and `_finish`."""
        mounts = self._mounts(root, accept=options.accept_mounts)
        try:
            with self._writing() as writer:
                tree = layout.build(self._assembly.listings(self._scan(root, mounts)), writer)
                if not options.allow_empty:
                    self._check_not_empty(root)
                mounts.write()
                return tree, self._finish(tree, writer)
        except BaseException:
            self._links.abort()
            raise

    def _builder(self) -> TreeBuilder:
        readable = self._module.check_readable
        return TreeBuilder(self._past, check_readable=readable, record=self._links)

    def audit(self, root: Path) -> AuditResult:
        """Compare the whole tree with the last commit; what was written for that goes again."""
        if self._head is None or self._past is None:
            raise no_commit(self._name)
        mounts = self._mounts(root, accept=False)
        pack: bytes | None = None
        try:
            with self._writing() as writer:
                tree = layout.build(self._assembly.listings(self._scan(root, mounts)), writer)
                self._check_not_empty(root)
                pack = writer.finish()
            new = Snapshot(self._repository, tree)
            first = tuple(islice(diff(self._past, new), _SHOWN))
            counts = count(self._past, new)
        finally:
            self._links.abort()
            if pack is not None:
                remove_pack(self._repository.pack_folder, pack)
        return AuditResult(self._head, counts, first, tuple(self._assembly.problems))

    def add_digests(self, fill: Callable[[Snapshot], Iterable[Listing]]) -> CommitResult:
        """Commit the last snapshot with more digests; what lists may rest on stays."""
        past, head, record = self._past, self._head, self._record
        if past is None or head is None:
            raise no_commit(self._name)
        with self._writing() as writer:
            top = self._finish(layout.build(fill(past), writer), writer)
        if top is None:
            return CommitResult(head, changed=False)
        made = self._commit(top, head.info.totals, _NO_CHANGE, head.info.skipped)
        if record is not None and record.commit == head.commit:
            kept = ListRecord(made.commit, record.scanned, record.lists, record.settings)
            write_record(self._places.lists, kept)
        return CommitResult(made, changed=True)

    def _missed(self, counts: Counts) -> int | None:
        """Entries that differ although lists were to name them all."""
        record = self._record
        if not (record and self._head and record.commit == self._head.commit and record.lists):
            return None
        return counts.added + counts.removed + counts.changed + counts.moved

    @contextmanager
    def _writing(self) -> Iterator[PackWriter]:
        """A pack, which is gone if something fails."""
        writer = PackWriter(
            os.fsencode(self._repository.pack_folder),
            os.fsencode(TEMPORARY + os.urandom(8).hex()),
            threads=os.cpu_count() or 1,
        )
        try:
            yield writer
        except BaseException:
            writer.abort()
            raise

    def _finish(self, tree: bytes, writer: PackWriter) -> bytes | None:
        """The tree of a commit, whose objects are durable now; None: there is none to be made."""
        others = {KEYS: self._keys.chain.encode()} if self._keys else {}
        top = write_root(self._descriptor(), tree, writer, others)
        if self._head and bytes.fromhex(self._head.tree) == top:
            writer.abort()
            return top if self._expires_soon() else None
        writer.finish()
        return top

    def _expires_soon(self) -> bool:
        """Whether the newest commit needs a new signature, though nothing else is new.

        So does one from the future: this clock was wrong, and downstreams take it in time only.
        """
        keys, head = self._keys, self._head
        if keys is None or head is None:
            return False
        now = time.time()
        return head.valid_until < now + keys.validity / 2 or head.time > now + _AHEAD_SECONDS

    def _seal(self, top: bytes) -> Seal | None:
        keys = self._keys
        if keys is None:
            return None
        listing = listing_hash(self._places.listing_hashes, top, self._repository)
        promise = Promise(self._identity, int(time.time()) + keys.validity, listing)
        return Seal(promise, partial(keys.signer.sign, NAMESPACE), keys.cosign)

    def _commit(
        self, top: bytes, totals: Totals, counts: Counts, skipped: int, now: int | None = None
    ) -> Head:
        serial = self._head.info.serial + 1 if self._head else 1
        info = CommitInfo(self._name, serial, totals, counts, skipped)
        return self._repository.commit(
            *(top, info, self._head, self._module.retention), seal=self._seal(top), now=now
        )

    def _note(self, head: Head, *, scanned: int, lists: int) -> None:
        """Record how the newest commit was made."""
        record = ListRecord(head.commit, scanned, lists, settings_of(self._module))
        write_record(self._places.lists, record)

    def _mounts(self, root: Path, *, accept: bool) -> Mounts:
        enter = not self._module.one_file_system
        return Mounts(root, self._places.mounts, self._past, enter=enter, accept=accept)

    def _columns(self) -> DigestColumns | None:
        """None: the module has no digests."""
        digest = self._module.digest
        if digest == "off":
            return None
        damage = scrub_record.read_record(self._places.scrub).is_damage
        policy = ReadingPolicy(later=digest == "later", is_damage=damage)
        return digest_columns(self._module, self._places, self._blocks, policy)

    def _scan(self, root: Path, mounts: Mounts) -> Scanned:
        scanned = mounts.guard(scan_runs(root, scan_options(self._module), mounts.watched))
        columns = self._columns()
        if columns is None:
            yield from scanned
            return
        try:
            yield from columns.fill(scanned)
        finally:
            self._count_hashed(columns)

    def _count_hashed(self, columns: DigestColumns | None) -> None:
        if columns is not None:
            files, size = self._hashed
            self._hashed = (files + columns.hashed_files, size + columns.hashed_bytes)

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
        raise empty_root(root)

    def _counts(self, tree: bytes, totals: Totals) -> Counts:
        if self._past is None:
            return Counts(added=totals.entries)
        return count(self._past, Snapshot(self._repository, tree))


def _joined(first: tuple[Problem, ...], second: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """The problems of two looks, the second at a few paths: of one path the second counts."""
    again = {problem.path for problem in second}
    return (*(problem for problem in first if problem.path not in again), *second)


def scan_options(module: Module) -> ScanOptions:
    """How the tree of a module is looked at."""
    return ScanOptions(
        one_file_system=module.one_file_system,
        owners=module.owners,
        exclude=(*LOCK_FILES, *map(os.fsencode, module.exclude)),
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


def no_commit(name: str) -> NoCommitError:
    """What to raise for a module that has to have a commit."""
    return NoCommitError(f"{name}: there is no commit yet", hint=f"run: huai-server commit {name}")


def _prepare(root: Path, options: CommitOptions, export: TreeExport) -> None:
    """Let the directories of an export be made, but never those that hide that a tree is empty."""
    if not options.allow_empty and not holds_anything(root):
        raise empty_root(root)
    export.prepare()
