"""Checking a metadata repository: reads all of it, and builds the layout of the newest tree again.

Writes nothing.  Every read verifies the git id, and each pack must match its checksum: some bits of
compressed data have no effect on what is read.  Beyond that, descriptor, trailers, hardlinks,
layout, block indices and signature of the newest commit must be what FORMAT.md says.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple

from huai_native._native import BlockIndex, ListingHashes, check_hardlinks, write_tree
from huai_schema.codec.commits import Totals, decode_commit
from huai_schema.codec.descriptor import Descriptor
from huai_schema.codec.keys import read_keys
from huai_schema.codec.listing import Listing
from huai_schema.codec.signing import Promise, signers_of, split_commit
from huai_schema.codec.static_files import FOLDER, HEAD, Static
from huai_schema.entries import Directory, File, Symlink
from huai_schema.errors import FormatError
from huai_schema.git.objects import decode_tree
from huai_schema.layout.snapshot import Snapshot, decode_listing
from huai_server.store.block_indices import BlockIndices
from huai_server.store.commit_graph import is_graph_sound
from huai_server.store.repository import HEAD as HEAD_FILE
from huai_server.store.repository import Head, Repository, StoreError

_BLOCK = 1 << 20
_CHECKSUM_BYTES = 20
"""The length of the SHA-1 at the end of a pack, over everything before it."""


class CheckReport(NamedTuple):
    """The commits and objects that a check read, the newest tree's entries, and the faults."""

    commits: int
    objects: int
    entries: int
    faults: tuple[str, ...]
    is_damaged: bool = False
    """True for faults in more than block indices and static files, which can be made again."""


def check_repository(name: str, repository: Repository) -> CheckReport:
    """Read all of `repository`, which should be of the module `name`; report its faults.

    A fault of the content is never raised.  Raises `GitMissingError` if git is needed to check a
    commit-graph, and `OSError` if a file cannot be read.  Writes nothing.
    """
    return _Check(name, repository).run()


class _Check:
    """One check of a repository; `run` is called once."""

    def __init__(self, name: str, repository: Repository) -> None:
        self._name = name
        self._repository = repository
        self._checked: set[bytes] = set()
        self._indices = BlockIndices(repository.path).stored()
        self._faults: list[str] = []
        self._slight_faults: list[str] = []
        """Faults in files that can be made again."""
        self._files = self._directories = self._symlinks = self._bytes = 0

    def run(self) -> CheckReport:
        """Check all commits and objects, packs, static files, commit-graph; return the faults."""
        commits = 0
        newer: Head | None = None
        head_file = self._repository.path / "HEAD"
        if not head_file.is_file() or head_file.read_bytes() != HEAD_FILE:
            self._faults.append(f"{self._repository.path}: HEAD does not name the branch")
        with self._collecting():
            for head in self._repository.history():
                commits += 1
                if newer is None:
                    with self._collecting():
                        self._check_newest(head)
                elif head.info.serial >= newer.info.serial:
                    self._faults.append(f"{newer.commit}: the serial does not grow")
                if head.info.module != self._name:
                    self._faults.append(f"{head.commit}: a commit of module {head.info.module!r}")
                newer = head
                with self._collecting():
                    self._read_all(head)
        for pack in sorted(self._repository.pack_folder.glob("*.pack")):
            if not _is_whole(pack):
                self._faults.append(f"{pack}: does not match its checksum")
        self._check_static()
        if not is_graph_sound(self._repository.path):
            self._faults.append(
                f"{self._repository.path}: a commit-graph names removed commits, or is damaged: "
                "`huai-server maintain` deletes it"
            )
        entries = self._files + self._directories + self._symlinks
        faults = (*self._faults, *self._slight_faults)
        return CheckReport(commits, len(self._checked), entries, faults, bool(self._faults))

    @contextmanager
    def _collecting(self) -> Iterator[None]:
        """Record the error that ends the block, and let the check continue after the block."""
        try:
            yield
        except (FormatError, StoreError) as error:
            self._faults.append(error.message)

    def _check_static(self) -> None:
        """Read the head of the static files, if any, and all that it names; record damaged ones.

        Missing ones count as damaged.
        """
        folder = self._repository.path / FOLDER
        packs: set[Path] = set()
        lists, damaged = [folder / HEAD], []
        for path in lists if lists[0].exists() else ():
            try:
                static = Static.decode(path.read_bytes(), str(path))
            except (FormatError, FileNotFoundError):
                damaged.append(path)
                continue
            packs.update(folder / step.file.pack_name for step in static.steps)
            listed = (folder / each.file.list_name for each in static.lists)
            lists += [each for each in listed if each not in lists]
        damaged += [pack for pack in sorted(packs) if not pack.exists() or not _is_whole(pack)]
        hint = f"remove {folder}, and `huai-server publish` writes it again"
        self._slight_faults += (f"{path}: missing or damaged; {hint}" for path in damaged)

    def _read_all(self, head: Head) -> None:
        """Read each object of a commit that was not read for a newer one.

        Raises `FormatError` for the first that is missing or damaged.
        """
        pending = [(bytes.fromhex(head.tree), True)]
        while pending:
            oid, is_tree = pending.pop()
            if oid in self._checked:
                continue
            self._checked.add(oid)
            data = self._repository.read(oid, "tree" if is_tree else "blob")
            if is_tree:
                pending.extend((item.oid, item.is_tree) for item in decode_tree(data, oid.hex()))

    def _check_newest(self, head: Head) -> None:
        """Record faults of the newest commit: in layout, totals, hardlinks, signature and indices.

        Raises `FormatError` if it cannot be decoded, or a hardlink is wrong.
        """
        descriptor, snapshot = self._repository.snapshot(head)
        if descriptor.module != self._name:
            self._faults.append(f"the repository is of module {descriptor.module!r}")
        if write_tree(self._counted(snapshot), None) != snapshot.tree:
            self._faults.append(f"{head.commit}: the layout is not canonical")
        totals = Totals(self._files, self._directories, self._symlinks, self._bytes)
        if totals != head.info.totals:
            self._faults.append(f"{head.commit}: the trailers say {head.info.totals}, not {totals}")
        check_hardlinks(*snapshot.arguments)
        self._check_signature(head, descriptor)

    def _check_signature(self, head: Head, descriptor: Descriptor) -> None:
        """Record faults of a commit's signature, if any: in its keys, their number, its listing.

        Raises `FormatError` if a signature or the keys are malformed or wrong.
        """
        root = bytes.fromhex(head.tree)
        data = self._repository.read(bytes.fromhex(head.commit), "commit")
        signed = split_commit(data)
        if signed is None:
            return
        signers, keys = signers_of(signed), read_keys(root, self._repository)
        if keys is None or signers[0] not in keys.newest.keys:
            self._faults.append(f"{head.commit}: signed by a key that does not count: {signers[0]}")
        elif not keys.newest.agrees(signers):
            needed = keys.newest.threshold
            self._faults.append(f"{head.commit}: signed by fewer than the {needed} keys it needs")
        promise = Promise.decode(decode_commit(data).message.decode())
        if promise.identity != descriptor.identity:
            self._faults.append(f"{head.commit}: signed as another module")
        if promise.listing != ListingHashes(b"").of_tree(root, self._repository):
            self._faults.append(f"{head.commit}: signed for another listing")

    def _counted(self, snapshot: Snapshot) -> Iterator[Listing]:
        """Yield the listings; counts their entries, and checks the block indices of their files."""
        for listing in snapshot.listings():
            for entry in decode_listing(listing):
                match entry:
                    case File():
                        self._files += 1
                        self._bytes += entry.size
                        if entry.digest in self._indices:
                            self._check_index(entry.size, entry.digest)
                    case Directory():
                        self._directories += 1
                    case Symlink():
                        self._symlinks += 1
            yield listing

    def _check_index(self, size: int, digest: bytes) -> None:
        """Record a damaged block index; each is checked once.  `size` is that of the file."""
        path = self._indices.pop(digest)
        try:
            BlockIndex.decode(path.read_bytes(), size, digest)
        except FileNotFoundError:
            pass  # a commit has removed it meanwhile
        except FormatError as error:
            self._slight_faults.append(
                f"{path}: {error.reason}; downstreams do without it if it is removed"
            )


def _is_whole(pack: Path) -> bool:
    """True if a pack ends with the SHA-1 of all bytes before."""
    left = pack.stat().st_size - _CHECKSUM_BYTES
    summed = sha1(usedforsecurity=False)
    with pack.open("rb") as source:
        while left > 0 and (block := source.read(min(left, _BLOCK))):
            summed.update(block)
            left -= len(block)
        return source.read() == summed.digest()
