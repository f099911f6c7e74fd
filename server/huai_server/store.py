"""The metadata repository of one module on the upstream: the only place that knows pygit2.

Reads objects and refs, moves the one branch.  New objects come as packs (`pack`); the ref
moves last, when everything it names is on the disk.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pygit2
from pygit2.enums import ObjectType, Option

from huai_schema.commits import CommitInfo
from huai_schema.descriptor import Descriptor, read_root
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.gitobjects import Kind, decode_tree
from huai_schema.limits import OBJECT_BYTES
from huai_schema.snapshot import Snapshot

BRANCH = "refs/heads/main"
_KINDS: dict[Kind, ObjectType] = {
    "blob": ObjectType.BLOB,
    "tree": ObjectType.TREE,
    "commit": ObjectType.COMMIT,
}
_SETTINGS = {
    "gc.auto": "0",
    "repack.writeBitmaps": "false",
    "receive.denyNonFastForwards": "true",
    "transfer.hideRefs": "refs/huai",
}


class StoreError(HuaiError):
    """A repository that is missing, damaged or cannot be written."""

    exit_code = ExitCode.UNSOUND


class Head(NamedTuple):
    """The newest commit of a module."""

    commit: str
    """Hex id."""
    tree: str
    """Hex id of the commit's tree."""
    time: int
    """Seconds since the epoch at which it was made."""
    info: CommitInfo


class Repository:
    """An `ObjectReader` over one bare repository."""

    def __init__(self, path: Path) -> None:
        """Open an existing repository; `StoreError` if there is none."""
        # The administrator may run the server as another user than the hook.
        pygit2.option(Option.SET_OWNER_VALIDATION, False)
        pygit2.option(Option.ENABLE_FSYNC_GITDIR, True)
        self.path = path
        try:
            self._git = pygit2.Repository(str(path))
        except pygit2.GitError as error:
            raise StoreError(
                f"{path}: cannot open the metadata repository: {error}",
                hint="add the module again, or restore its repository",
            ) from error

    @classmethod
    def create(cls, path: Path) -> "Repository":
        """Make an empty repository at `path`, or open the one that is there."""
        if not path.exists():
            git = pygit2.init_repository(str(path), bare=True, initial_head="main")
            for key, value in _SETTINGS.items():
                git.config[key] = value
        return cls(path)

    @property
    def packs(self) -> Path:
        """Where packs live."""
        return self.path / "objects" / "pack"

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

    def head(self) -> Head | None:
        """The newest commit, or None before the first one."""
        ref = self._git.references.get(BRANCH)
        return None if ref is None else self._head(ref.peel(pygit2.Commit))

    def history(self) -> Iterator[Head]:
        """All commits of the branch, newest first."""
        ref = self._git.references.get(BRANCH)
        if ref is not None:
            for commit in self._git.walk(ref.target):
                yield self._head(commit)

    def snapshot(self, head: Head) -> tuple[Descriptor, Snapshot]:
        """What a commit holds."""
        descriptor, tree = read_root(bytes.fromhex(head.tree), self)
        return descriptor, Snapshot(self, tree)

    def objects(self, tree: str) -> set[bytes]:
        """The ids of a tree and all below it; reads trees, no blobs."""
        pending, found = [bytes.fromhex(tree)], {bytes.fromhex(tree)}
        while pending:
            for item in decode_tree(self.read(pending.pop(), "tree")):
                if item.oid not in found:
                    found.add(item.oid)
                    if item.is_tree:
                        pending.append(item.oid)
        return found

    def commit(self, tree: bytes, info: CommitInfo, parent: Head | None) -> Head:
        """Make a commit and move the branch to it; its objects are on the disk already."""
        who = pygit2.Signature("huai", "huai@localhost", int(time.time()), 0)
        parents = [pygit2.Oid(hex=parent.commit)] if parent else []
        oid = self._git.create_commit(None, who, who, info.encode(), pygit2.Oid(raw=tree), parents)
        self._git.references.create(BRANCH, oid, force=True)
        return self._head(self._git[oid].peel(pygit2.Commit))

    def _head(self, commit: pygit2.Commit) -> Head:
        info = CommitInfo.decode(commit.message)
        return Head(str(commit.id), str(commit.tree_id), commit.commit_time, info)


def read_head(repository: Path) -> Head | None:
    """The newest commit in `repository`, or None before the first one."""
    return Repository(repository).head()
