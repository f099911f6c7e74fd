"""The commits of which only the part that a filter includes was fetched.

Their record stands in the folder of the repository.  Rule: it is written before a ref names such a
commit.  If it is lost, objects are missing, and the metadata are fetched again.  A commit that it
does not name, because an older one was restored, is searched as one of another filter.

A signed commit proves the stated hashes of what it lacks.  Rule: once such a tree is fetched, it is
hashed, with all trees that name it.
"""

from collections.abc import Callable, Collection, Iterable
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from huai_native._native import Packs
from huai_program.listing_hashes import by_tree
from huai_program.record_file import RecordFile
from huai_schema.git.objects import OID_BYTES
from huai_schema.paths import RelPath

if TYPE_CHECKING:
    from huai_client.filters import Rules

_NAME = "sparse"
_WHOLE, _OTHER = "", "-"
"""Fingerprints of a whole commit, and of one with an unknown filter."""
_UNKNOWN = RelPath(b"\x7f")
"""A name that no filter includes unless it includes all that it does not exclude."""


class _Record(msgspec.Struct, frozen=True):
    commits: dict[str, str] = {}
    """For each commit (hex id) the fingerprint of the filter; empty for a whole commit."""
    absent: bytes = b""
    """The ids of the trees that were left out, one after the other."""
    hashes: bytes = b""
    """Records of the listing hashes of such trees, as an upstream stated them."""


_FILE = RecordFile(_Record)


class SparseCommits:
    """The partial commits of one repository; `packs` reads what they lack as empty directories.

    Methods raise an `OSError` of the disk.
    """

    def __init__(self, repository: Path, packs: Packs, forget_hashes: Callable[[], None]) -> None:
        """Read the record of `repository`; nothing if it is missing or malformed.

        `forget_hashes` deletes the hashes of trees that are here: some are computed from stated
        ones.
        """
        self._path = repository / _NAME
        self._forget_hashes = forget_hashes
        self._packs = packs
        self.rules: Rules | None = None
        """The filter by which commits are fetched in part; None to fetch all of them."""
        self.read(repository)

    def read(self, repository: Path) -> None:
        """Take over the record of another repository, whose packs are read as well."""
        record = _FILE.load(repository / _NAME) or _Record()
        self._commits = record.commits
        starts = range(0, len(record.absent), OID_BYTES)
        self.absent = {record.absent[at : at + OID_BYTES] for at in starts}
        """The ids of trees that are not here: an excluded directory has each."""
        self._hashes = by_tree(record.hashes)
        if self.absent:
            self._packs.set_absent([*self.absent])

    def limit_to(self, rules: "Rules") -> None:
        """Fetch only what `rules` include, if they exclude everything that they do not name."""
        if not rules.reaches(_UNKNOWN, directory=True):
            self.rules = rules

    def __contains__(self, commit: str) -> bool:
        """Return True for a commit that is not known to be here as a whole."""
        return bool(self._commits) and self._commits.get(commit) != _WHOLE

    def by_rules(self, commits: Iterable[str]) -> set[str]:
        """Return those of `commits` of which all that the present filter includes is here."""
        fingerprint = self._fingerprint
        return {commit for commit in commits if self._commits.get(commit) == fingerprint}

    @property
    def hashed(self) -> AbstractSet[bytes]:
        """The ids of trees that are not here, but their listing hashes are."""
        return self._hashes.keys()

    @property
    def hashes(self) -> bytes:
        """The records of these hashes."""
        return b"".join(self._hashes.values())

    def add(self, commit: str, absent: Collection[bytes], hashes: bytes) -> None:
        """Record that `commit` was fetched by the present filter, without the trees `absent`.

        `hashes`: records of the listing hashes of some of these.
        """
        self._hashes.update(by_tree(hashes))
        self._replace({**self._commits, commit: self._fingerprint}, self.absent.union(absent))

    def add_whole(self, commit: str) -> None:
        """Record that `commit` was fetched as a whole."""
        self._replace({**self._commits, commit: _WHOLE}, self.absent)

    def keep(self, commits: Collection[str], absent: Collection[bytes]) -> None:
        """Forget all but `commits`, which lack the trees `absent`."""
        partial = any(commit in self for commit in commits)
        left = {commit: self._commits.get(commit, _OTHER) for commit in commits} if partial else {}
        self._replace(left, {*absent})

    def distrust(self) -> None:
        """Forget the stated hashes, so that they are asked for again."""
        if self._hashes:
            self._hashes = {}
            self._forget_hashes()
            unknown = {each: key and _OTHER for each, key in self._commits.items()}
            self._replace(unknown, self.absent)

    def clear(self) -> None:
        """Forget all commits; their packs are being removed."""
        self._commits, self.absent, self._hashes = {}, set(), {}
        self._packs.set_absent([])

    @property
    def _fingerprint(self) -> str:
        key = self.rules.key() if self.rules else ""
        return blake2b(key.encode(), digest_size=8).hexdigest()

    def _replace(self, commits: dict[str, str], trees: set[bytes]) -> None:
        # One that was fetched since has to be missed if its pack gets lost.
        absent = {tree for tree in trees if tree not in self._packs}
        hashes = {tree: each for tree, each in self._hashes.items() if tree in absent}
        if len(hashes) < len(self._hashes):
            self._forget_hashes()
        if (commits, absent) != (self._commits, self.absent):
            self._commits, self.absent, self._hashes = commits, absent, hashes
            _FILE.save(self._path, _Record(commits, b"".join(sorted(absent)), self.hashes))
            self._packs.set_absent([*absent])
