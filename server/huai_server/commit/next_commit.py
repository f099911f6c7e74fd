"""The commit after the newest one: its objects, signature, ref and record.

Its content comes from `whole_tree`, `from_lists` or `later`.

Order of writes: objects, durable, as a pack; then the groups of hardlinks; then the commit; the
ref; last the record of how it was made.  A run killed anywhere leaves the former commit and at most
an unused pack; or the new commit without that record, and then lists are not enough for the next.
"""

import os
import time
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from huai_native._native import PackWriter
from huai_program.listing_hashes import listing_hash
from huai_program.packs import PACK, opened_writer
from huai_schema.codec.commits import CommitInfo, Counts, Totals
from huai_schema.codec.descriptor import Descriptor, write_root
from huai_schema.codec.keys import ITEM as KEYS
from huai_schema.codec.keys import read_keys
from huai_schema.codec.signing import NAMESPACE, Promise
from huai_schema.limits import CLOCK_SKEW
from huai_server.commit.link_record import LinkRecord
from huai_server.commit.list_record import LIST_RECORD, ListRecord, settings_of
from huai_server.commit.tree_reader import TreeReader
from huai_server.config.tables import Module
from huai_server.state.paths import ModulePlaces
from huai_server.store.block_indices import BlockIndices
from huai_server.store.repository import Head, Repository, Seal

if TYPE_CHECKING:  # few commits export anything
    from huai_server.export.into_tree import ExportOfTree
    from huai_server.signing.keys import ServerKeys

NO_CHANGE = Counts(new_bytes=0)


class CommitSettings(NamedTuple):
    """The configured module, and what its commits are made with."""

    module: Module
    keys: "ServerKeys | None" = None
    """None leaves commits unsigned."""
    export: "ExportOfTree | None" = None
    """The export into the tree, if there is one."""


class NextCommit:
    """A commit in the making; the caller holds the module's lock until it is made."""

    def __init__(
        self,
        name: str,
        settings: CommitSettings,
        places: ModulePlaces,
        repository: Repository,
        snapshot: Path | None = None,
    ) -> None:
        """The tree is read at the path `snapshot`, if there is one."""
        self.name = name
        self.module, self._keys, self.export = settings
        self.places = places
        self.repository = repository
        self.head = repository.head()
        self._refuse_older_keys()
        descriptor, past = repository.snapshot(self.head) if self.head else (None, None)
        self.past = past
        waiting = repository.pending()
        self._pending = waiting[1] if waiting else None
        self.record = LIST_RECORD.load(places.lists)
        self.links = LinkRecord(places.hardlinks)
        self.packs: set[Path] = set()
        """The packs that this run added to the repository."""
        self.blocks = BlockIndices(repository.path)
        self.reader = TreeReader(self.module, places, self.blocks, snapshot=snapshot)
        # Made with the module's first commit.  A module that is created again gets another one.
        began = self._pending and self._pending.promise.identity
        self._identity = (descriptor and descriptor.identity) or began or os.urandom(16).hex()

    def open_pack(self) -> AbstractContextManager[PackWriter]:
        """Return a context manager: the writer of a pack, which is removed unless finished."""
        return opened_writer(self.repository.pack_folder)

    def store(self, writer: PackWriter) -> None:
        """Make the objects durable, and add the path of their pack, if any, to `packs`."""
        name = writer.finish()
        if name is not None:
            self.packs.add(self.repository.pack_folder / (os.fsdecode(name) + PACK))

    def finish(self, tree: bytes, writer: PackWriter) -> bytes | None:
        """Write the commit's git tree, and return its id once all objects are durable.

        `tree` is the id of the root directory's tree.  None if the newest commit has the same, and
        needs no new signature; a pending commit is dropped then.
        """
        root_files = {KEYS: self._keys.chain.encode()} if self._keys else {}
        top = write_root(self._descriptor(), tree, writer, root_files)
        if self.head and bytes.fromhex(self.head.tree) == top:
            if self._expires_soon():
                return top
            self.repository.drop_pending()  # the tree is again as committed
            return None
        if self._pending is None or self._pending.tree != top:  # else its objects are durable
            self.store(writer)
        return top

    def commit(
        self, top: bytes, totals: Totals, counts: Counts, skipped: int, now: int | None = None
    ) -> Head:
        """Make the commit of `top`, which `finish` returned, and move the branch to it.

        If cosignatures are missing, it is stored as pending, and `PendingCommitError` is raised. If
        a commit may become pending, the record for lists is deleted.  `skipped` counts entries that
        no snapshot can hold; `now` is the time in seconds since the epoch, None for the present.
        """
        # A waiting one may have been signed elsewhere: serials must be unique.
        serial = self.repository.last_serial() + 1
        info = CommitInfo(self.name, serial, totals, counts, skipped)
        if self._keys and self._keys.pending:
            # If this one waits, the next follows the same commit, and must find the same changes
            # again.
            self.places.lists.unlink(missing_ok=True)
        return self.repository.commit(
            *(top, info, self.head, self.module.retention), seal=self._seal(top), now=now
        )

    def save_record(self, head: Head, *, scan_time: int, commits_by_lists: int) -> None:
        """Write the record of how `head`, the newest commit, was made.

        `scan_time` is that of the last whole scan, in seconds since the epoch; `commits_by_lists`
        is the number of commits since then.
        """
        settings = settings_of(self.module)
        record = ListRecord(head.commit, scan_time, commits_by_lists, settings)
        LIST_RECORD.save(self.places.lists, record)

    def _expires_soon(self) -> bool:
        """True if less than half of the validity of the newest commit's signature is left.

        Also for a commit from the future: the clock was wrong, and downstreams wait until then.
        False without keys.
        """
        keys, head = self._keys, self.head
        if keys is None or head is None:
            return False
        now = time.time()
        return head.valid_until < now + keys.validity / 2 or head.time > now + CLOCK_SKEW

    def _refuse_older_keys(self) -> None:
        """Raise `SigningError` if the newest commit has later versions of the same keys.

        Downstreams would refuse the next one.
        """
        keys, head = self._keys, self.head
        committed = read_keys(bytes.fromhex(head.tree), self.repository) if keys and head else None
        if keys is None or committed is None:
            return
        own, newest = keys.chain.newest, committed.newest
        if newest.version > own.version and committed.follows(own):
            from huai_server.signing.signer import SigningError

            raise SigningError(
                f"{self.name}: {self.places.root / 'keys'} has version {own.version} of the keys, "
                f"and the newest commit has version {newest.version}",
                hint="restore that file, and the key, from a newer backup; the commit's: git "
                "cat-file blob main:keys",
            )

    def _seal(self, top: bytes) -> Seal | None:
        """Return the promise and the signers of the commit, or None without keys.

        Computes the listing hash of `top`, the id of the commit's git tree, and caches it on the
        disk.
        """
        keys = self._keys
        if keys is None:
            return None
        listing = listing_hash(self.places.listing_hashes, top, self.repository)
        promise = Promise(self._identity, int(time.time()) + keys.validity, listing)
        return Seal(promise, partial(keys.signer.sign, NAMESPACE), keys.cosign, keys.needed)

    def _descriptor(self) -> Descriptor:
        """Return the descriptor of the module, as server.toml has it."""
        module = self.module
        return Descriptor(
            self.name,
            module.content_urls,
            module.rules,
            self._identity,
            module.block_index_size,
            module.mirrors,
        )
