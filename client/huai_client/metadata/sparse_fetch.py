"""Fetches the part of a commit that a filter includes, by git's protocol over HTTP.

The filter decides level by level, so that what it leaves out is neither named nor sent.  Each
request is for the objects that are known to be missing.
"""

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from huai_client.metadata.git.connectivity import PackReader, find_missing, read_commit
from huai_client.metadata.git.incoming import IncomingPack
from huai_client.metadata.git.limits import WorkLimit
from huai_client.metadata.git.local import LocalRepository, shallow_of
from huai_client.metadata.git.wire import (
    ADDRESS,
    REPLY_TYPE,
    REQUEST_TYPE,
    VERSION,
    read_pack,
    request_objects,
    request_top,
)
from huai_client.metadata.http import NotServedError, Request, send
from huai_client.metadata.newest import Newest
from huai_program.listing_hashes import HASHES_TYPE, LISTING_HASHES, RECORD_BYTES, by_tree
from huai_program.shallow import write_shallow
from huai_schema.codec.signing import split_commit
from huai_schema.errors import MissingObjectError

if TYPE_CHECKING:
    from huai_client.filters import Rules

_WANTED = 10_000
"""Objects of one request: half a megabyte of ids."""
_ROUNDS = 10_000
"""An honest tree takes one for each directory above another, and three."""


class SparsePart(NamedTuple):
    """A part of a commit that was fetched."""

    packs: tuple[Path, ...]
    absent: list[bytes]
    """The ids of the trees that were left out."""
    hashes: bytes
    """Records of the listing hashes of such trees, if the commit is signed."""


class SparseFetch:
    """Fetches one commit without what `rules` leave out.

    Methods raise as those of `StaticFetch` do.
    """

    def __init__(
        self,
        newest: Newest,
        local: LocalRepository,
        reader: PackReader,
        rules: "Rules",
        bases: Collection[str],
        *,
        timeout: float,
    ) -> None:
        """`reader` reads the repository, where all that `rules` include of `bases` is.

        `timeout` (s): see `send`.
        """
        self._newest = newest
        self._local = local
        self._reader = reader
        self._rules = rules
        self._bases = bases
        self._timeout = timeout
        self._work = WorkLimit(deadline=local.deadline)
        self._packs: list[Path] = []

    def complete(self, hashed: AbstractSet[bytes]) -> SparsePart:
        """Fetch the part; `hashed`: trees that are not here, but their listing hashes are.

        Raises `NotServedError` if the upstream does not send single objects, or for a signed commit
        not the hashes of what is left out.
        """
        local, commit = self._local, self._newest.commit
        oid = bytes.fromhex(commit)
        if local.objects.find(oid) is None:
            self._fetch(request_top(oid))
        head = read_commit(commit, local.objects)
        is_signed = split_commit(self._reader.read(oid, "commit")) is not None
        # The bases may be unsigned, and the hashes of what they lack not here.
        bases = () if is_signed else local.heads(self._bases).values()
        search = find_missing(head, bases, self._reader, self._rules.table)
        missing: list[bytes] = []
        for _ in range(_ROUNDS):
            before, missing = missing, search.next()
            if not missing or missing == before:
                break
            for oids in _parts(missing):
                self._fetch(request_objects(oids))
        if missing:
            raise MissingObjectError("the upstream left out an object", missing[0].hex())
        absent = search.absent
        unhashed = _parts(sorted({*absent} - hashed)) if is_signed else ()
        hashes = b"".join(map(self._fetch_hashes, unhashed))
        older = local.heads(local.older)
        write_shallow(local.path, shallow_of({**older, commit: head}))
        return SparsePart(tuple(self._packs), absent, hashes)

    def _fetch_hashes(self, trees: list[bytes]) -> bytes:
        """Request the records of the listing hashes of `trees`, which are not here."""
        url, size = self._newest.url, len(trees) * RECORD_BYTES
        lines = b"".join(b"%b\n" % tree.hex().encode() for tree in trees)
        request = Request(LISTING_HASHES, lines, HASHES_TYPE)
        with send(url, request, timeout=self._timeout, deadline=self._local.deadline) as response:
            records = response.read_all(size + 1)
        if len(records) != size or by_tree(records).keys() != {*trees}:
            raise NotServedError(f"{url}: the hashes of what is left out are not served")
        return records

    def _fetch(self, body: bytes) -> None:
        """Request objects, and install the pack with them."""
        url, local = self._newest.url, self._local
        request = Request(ADDRESS, body, REQUEST_TYPE, VERSION)
        with (
            send(url, request, timeout=self._timeout, deadline=local.deadline) as response,
            IncomingPack(local.path / "objects" / "pack") as pack,
        ):
            if response.content_type != REPLY_TYPE:
                raise NotServedError(f"{url}: no reply of git's protocol")
            read_pack(response.read, pack.write, str(url))
            path, _ = pack.install(local.objects, self._work)
        if path:
            self._packs.append(path)


def _parts(oids: list[bytes]) -> list[list[bytes]]:
    """Return lists of at most so many as one request may have."""
    return [oids[at : at + _WANTED] for at in range(0, len(oids), _WANTED)]
