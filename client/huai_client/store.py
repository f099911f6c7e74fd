"""The metadata repository of one module on the downstream: the only place that knows pygit2.

Fetches the newest commit without history, reads objects, and keeps what refs name: the
applied commit and those that a cut run was going for.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pygit2
from pygit2.enums import ObjectType, Option

from huai_client.upstream import BRANCH, MetadataUrl, NotServedError, UpstreamError, is_http
from huai_schema.commits import CommitInfo
from huai_schema.descriptor import Descriptor, read_root
from huai_schema.errors import FormatError
from huai_schema.gitobjects import Kind
from huai_schema.limits import OBJECT_BYTES
from huai_schema.snapshot import Snapshot

_FETCHED = "refs/huai/fetched"
_KEPT = "refs/huai/kept/"
_KINDS: dict[Kind, ObjectType] = {
    "blob": ObjectType.BLOB,
    "tree": ObjectType.TREE,
    "commit": ObjectType.COMMIT,
}


class Commit(NamedTuple):
    """One commit of a module, as far as this side has it."""

    id: str
    info: CommitInfo
    time: int
    """Seconds since the epoch."""
    descriptor: Descriptor
    snapshot: Snapshot


class Repository:
    """An `ObjectReader` over the downstream's copy of the metadata."""

    def __init__(self, path: Path) -> None:
        """Open the repository at `path`, made anew if it is missing or cannot be used."""
        pygit2.option(Option.ENABLE_FSYNC_GITDIR, True)
        try:
            self._git = pygit2.Repository(str(path))
        except pygit2.GitError:
            self._git = pygit2.init_repository(str(path), bare=True, initial_head="main")

    def newest_commit(self, metadata: MetadataUrl) -> str:
        """The commit that the upstream's branch points to, by any transport git knows."""
        remote = self._git.remotes.create_anonymous(metadata.url)
        try:
            heads = {head.name: str(head.oid) for head in remote.list_heads()}
        except pygit2.GitError as error:
            raise UpstreamError(f"{metadata.url}: {error}") from error
        if BRANCH not in heads:
            raise NotServedError(f"{metadata.url}: nothing is committed there yet")
        return heads[BRANCH]

    def fetch(self, metadata: MetadataUrl) -> Commit:
        """Bring the newest commit here; only what this side does not have is sent."""
        remote = self._git.remotes.create_anonymous(metadata.url)
        # libgit2 refuses a depth for repositories on the local disk.
        depth = 1 if is_http(metadata.url) else 0
        try:
            remote.fetch([f"+{BRANCH}:{_FETCHED}"], depth=depth)
        except pygit2.GitError as error:
            raise UpstreamError(
                f"{metadata.url}: fetching the metadata failed: {error}", hint="run again"
            ) from error
        return self.commit(str(self._git.references[_FETCHED].target))

    def commit(self, commit: str) -> Commit:
        """A commit that is here; `FormatError` if it is not, or is no commit of a module."""
        try:
            found = self._git[commit].peel(pygit2.Commit)
        except (KeyError, ValueError, pygit2.GitError) as error:
            raise FormatError("there is no such commit", commit) from error
        info = CommitInfo.decode(found.message)
        descriptor, tree = read_root(found.tree_id.raw, self)
        return Commit(commit, info, found.commit_time, descriptor, Snapshot(self, tree))

    def has(self, commit: str) -> bool:
        """Whether a commit is here."""
        return self._git.get(commit) is not None

    def keep(self, commits: Iterable[str]) -> None:
        """Name exactly these commits, so that they stay and are offered in the next fetch."""
        wanted = set(commits)
        for name in list(self._git.references):
            if name.startswith(_KEPT) and name.removeprefix(_KEPT) not in wanted:
                self._git.references.delete(name)
        for commit in wanted:
            self._git.references.create(_KEPT + commit, commit, force=True)

    def read(self, oid: bytes, kind: Kind) -> bytes:
        """The content of an object (`ObjectReader`)."""
        name = pygit2.Oid(raw=oid)
        try:
            found, size = self._git.odb.read_header(name)
            if found != _KINDS[kind] or size > OBJECT_BYTES:
                reason = f"a {kind} of at most {OBJECT_BYTES} bytes was expected"
                raise FormatError(reason, str(name))
            return self._git.odb.read(name)[1]
        except (KeyError, pygit2.GitError) as error:
            raise FormatError(f"the object cannot be read: {error}", str(name)) from error
