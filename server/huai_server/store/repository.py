"""The metadata repository of one module on the upstream: the only place that knows pygit2.

Reads objects and refs, moves the one branch.  New objects come as packs (`pack_writer`); the ref
moves last, when everything it names is on the disk, and what downstreams ask for next (`steps`).
Rule: nothing of libgit2 leaves this module, neither values nor exceptions.
"""

import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from huai_native._native import Packs
from huai_schema.codec.commits import CommitInfo
from huai_schema.codec.descriptor import Descriptor, read_root
from huai_schema.codec.signing import Promise, join_commit, split_commit
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.git.objects import BRANCH, Kind
from huai_schema.layout.snapshot import Snapshot
from huai_schema.limits import OBJECT_BYTES
from huai_schema.program.durable import sync_folder
from huai_schema.program.packs import TEMPORARY, remove_unfinished
from huai_server.errors import storage_error, storage_errors
from huai_server.store.replaced import remove_replaced
from huai_server.store.retention import FOREVER, Retention
from huai_server.store.steps import (
    Wanted,
    drop_steps,
    remove_unfinished_steps,
    step_path,
    write_step,
)


class LibraryError(HuaiError):
    """Libgit2 does not start: it loads certificates, even where no connection is made."""

    exit_code = ExitCode.REQUIREMENT


try:
    import pygit2
    from pygit2.enums import ConfigLevel, ObjectType, Option, RepositoryOpenFlag
except ImportError:
    raise
except Exception as failure:  # its class is in the module that cannot be imported
    raise LibraryError(
        f"libgit2 does not start: {failure}",
        hint="install the certificates of the system (ca-certificates), or correct SSL_CERT_FILE",
    ) from failure

_PAST = "refs/huai/past/"
"""Of the histories that are over, each by the serial of its newest commit."""
_KEPT_BYTES = 4 << 20
"""Of objects: a commit reads most of them at most twice, and more kept ones make it no quicker."""
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
_FOREIGN_LEVELS = (
    ConfigLevel.PROGRAMDATA,
    ConfigLevel.SYSTEM,
    ConfigLevel.XDG,
    ConfigLevel.GLOBAL,
)
_REFUSALS = (pygit2.GitError, LookupError, ValueError, OSError)
"""What pygit2 raises, depending on the error's class in libgit2."""


class StoreError(HuaiError):
    """A repository that is missing or damaged."""

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
    valid_until: int = 0
    """Until when its signature holds, seconds since the epoch; 0: it is not signed."""


class Seal(NamedTuple):
    """What makes a commit a signed one."""

    promise: Promise
    sign: Callable[[bytes], bytes]
    """The signature of a commit object."""


class Repository:
    """An `ObjectReader` over one bare repository."""

    def __init__(self, path: Path) -> None:
        """Open an existing repository; `StoreError` if there is none."""
        _configure_library()
        self.path = path
        # Without the flag libgit2 would look for a repository in the folders above, too.
        with _reading(f"{path}: cannot open the metadata repository"):
            self._git = pygit2.Repository(str(path), RepositoryOpenFlag.NO_SEARCH)
        self.packs = Packs(_KEPT_BYTES)
        """What the engine reads without asking `read` (`ObjectReader`)."""
        self.packs.add(os.fsencode(self.pack_folder))

    @classmethod
    def create(cls, path: Path) -> "Repository":
        """Make an empty repository at `path`, or open the one that is there."""
        _configure_library()
        with storage_errors(path):
            if not path.exists():
                _initialize(path)
        return cls(path)

    @property
    def pack_folder(self) -> Path:
        """Where packs live."""
        return self.path / "objects" / "pack"

    def remove_unfinished(self) -> None:
        """Delete what a killed run left, and packs that were replaced long enough ago.

        The caller holds the module's lock.
        """
        with storage_errors(self.path):
            remove_unfinished(self.pack_folder)
            remove_replaced(self.pack_folder, time.time())
            remove_unfinished_steps(self.path)
            for path in (self.path / "objects").glob("tmp_object_*"):
                path.unlink(missing_ok=True)
            # All writers hold the module's lock, so git's own lock is left from a killed one.
            for lock in (*(self.path / "refs").rglob("*.lock"), self.path / "packed-refs.lock"):
                lock.unlink(missing_ok=True)

    def read(self, oid: bytes, kind: Kind) -> bytes:
        """The content of an object (`ObjectReader`)."""
        name = pygit2.Oid(raw=oid)
        try:
            self._refuse_cut(name)
            found, size = self._git.odb.read_header(name)
            if found != _KINDS[kind] or size > OBJECT_BYTES:
                reason = f"a {kind} of at most {OBJECT_BYTES} bytes was expected"
                raise FormatError(reason, str(name))
            return self._git.odb.read(name)[1]
        except _REFUSALS as error:
            raise FormatError(f"the object cannot be read: {error}", str(name)) from error

    def names_branch(self) -> bool:
        """Whether HEAD, where a clone begins, names the branch."""
        try:
            content = (self.path / "HEAD").read_bytes()
        except OSError:
            return False
        return content == f"ref: {BRANCH}\n".encode()

    def head(self) -> Head | None:
        """The newest commit, or None before the first one."""
        with _reading(f"{self.path}: {BRANCH}"):
            oid = self._branch()
            return None if oid is None else _head(self._commit(oid))

    def history(self) -> Iterator[Head]:
        """All commits that are here, newest first: of the branch, then of the histories before."""
        with _reading(f"{self.path}: the history of {BRANCH}"):
            past = self.past()
            oid = self._branch()
            while oid is not None:
                commit = self._commit(oid)
                head = _head(commit)
                yield head
                older = (each for each in past if each.info.serial < head.info.serial)
                before = next((pygit2.Oid(hex=each.commit) for each in older), None)
                oid = next(iter(commit.parent_ids), before)

    def past(self) -> list[Head]:
        """The newest commits of the histories that are over, newest first."""
        with _reading(f"{self.path}: {_PAST}"):
            found = [_head(self._git.references[name].peel(pygit2.Commit)) for name in self._ends()]
        return sorted(found, key=lambda head: -head.info.serial)

    def forget(self, past: Iterable[Head]) -> None:
        """Let nothing name these histories any more; the caller holds the module's lock."""
        wanted = {head.commit for head in past}
        with _reading(f"{self.path}: {_PAST}"):
            for name in self._ends():
                if str(self._git.references[name].target) in wanted:
                    self._git.references.delete(name)
        # What they named may go then, and must not be named after a power cut.
        with suppress(FileNotFoundError):
            sync_folder(self.path / _PAST)

    def snapshot(self, head: Head) -> tuple[Descriptor, Snapshot]:
        """The descriptor and the snapshot of a commit."""
        descriptor, tree = read_root(bytes.fromhex(head.tree), self)
        return descriptor, Snapshot(self, tree)

    def commit(
        self,
        tree: bytes,
        info: CommitInfo,
        parent: Head | None,
        retention: Retention = FOREVER,
        *,
        seal: Seal | None = None,
        now: int | None = None,
    ) -> Head:
        """Make a commit and move the branch to it; its objects are on the disk already.

        It begins a new history if that of `parent` is over; the old one gets its ref before.
        `now` in seconds since the epoch.
        """
        who = pygit2.Signature("huai", "huai@localhost", now or int(time.time()), 0)
        message = info.encode() + (seal.promise.encode() if seal else "")
        try:
            is_over = parent is not None and retention.is_full(self._length(parent))
            parents: list[str | pygit2.Oid] = [parent.commit] if parent and not is_over else []
            root = pygit2.Oid(raw=tree)
            # pygit2's own stubs call it an id.
            text: object = self._git.create_commit_string(who, who, message, root, parents)
            data = str(text).encode()
            if seal:
                data = join_commit(data, seal.sign(data))
            oid = self._git.odb.write(ObjectType.COMMIT, data)
            if parent:
                self._write_step(oid, tree, parent)
            if parent and is_over:
                name, end = f"{_PAST}{parent.info.serial}", pygit2.Oid(hex=parent.commit)
                self._git.references.create(name, end, force=True)
            self._git.references.create(BRANCH, oid, force=True)
        except _REFUSALS as error:
            raise storage_error(self.path, OSError(*_system(error))) from error
        valid_until = seal.promise.valid_until if seal else 0
        return Head(str(oid), tree.hex(), who.time, info, valid_until)

    def content(self, head: Head) -> Wanted:
        """A commit as it is sent."""
        return Wanted(self.read(bytes.fromhex(head.commit), "commit"), bytes.fromhex(head.tree))

    def tree_of(self, commit: str) -> bytes:
        """The id of a commit's tree."""
        with _reading(f"{self.path}: {commit}"):
            return self._commit(pygit2.Oid(hex=commit)).tree_id.raw

    def _write_step(self, commit: pygit2.Oid, tree: bytes, parent: Head) -> None:
        wanted = Wanted(self._git.odb.read(commit)[1], tree)
        path = step_path(self.path, parent.commit, str(commit))
        # Somebody's git has unpacked objects: it makes the packs that are asked for, too.
        with suppress(FormatError):
            write_step(self.packs, self.pack_folder, path, wanted, bytes.fromhex(parent.tree))
        drop_steps(self.path, keep=path, before=parent.commit)

    def _ends(self) -> list[str]:
        """The refs of the histories that are over."""
        return [name for name in self._git.references if name.startswith(_PAST)]

    def _length(self, head: Head) -> int:
        """How many commits the history has that ends with `head`, the newest one."""
        ends = (name.removeprefix(_PAST) for name in self._ends())
        return head.info.serial - max((int(end) for end in ends if end.isdecimal()), default=0)

    def _branch(self) -> pygit2.Oid | None:
        ref = self._git.references.get(BRANCH)
        target = None if ref is None else ref.resolve().raw_target
        return target if isinstance(target, pygit2.Oid) else None

    def _commit(self, oid: pygit2.Oid) -> pygit2.Commit:
        self._refuse_cut(oid)
        return self._git[oid].peel(pygit2.Commit)

    def _refuse_cut(self, oid: pygit2.Oid) -> None:
        """Raise `ValueError` for a truncated loose object, which libgit2 1.9 inflates for ever."""
        name = str(oid)
        try:
            data = (self.path / "objects" / name[:2] / name[2:]).read_bytes()
        except FileNotFoundError:
            return  # packed, as nearly all are
        inflater = zlib.decompressobj()
        try:
            inflater.decompress(data)
        except zlib.error as error:
            raise ValueError(f"object {name}: {error}") from None
        if not inflater.eof:
            raise ValueError(f"object {name} is truncated")


def _head(commit: pygit2.Commit) -> Head:
    try:
        info = CommitInfo.decode(commit.message)
        signed = split_commit(commit.read_raw()) is not None
        valid_until = Promise.decode(commit.message).valid_until if signed else 0
    except FormatError as error:
        raise error.within(str(commit.id)) from None
    return Head(str(commit.id), str(commit.tree_id), commit.commit_time, info, valid_until)


@cache
def _configure_library() -> None:
    """Settings of libgit2 that hold for the whole process."""
    # The server may run as another user than the one who commits.
    pygit2.option(Option.SET_OWNER_VALIDATION, False)
    pygit2.option(Option.ENABLE_FSYNC_GITDIR, True)
    # No user's own settings: HOME may even be a folder that this process cannot read.
    for level in _FOREIGN_LEVELS:
        pygit2.option(Option.SET_SEARCH_PATH, level, "")


def _initialize(path: Path) -> None:
    """Make a repository beside its place, and rename it: a killed run leaves no half of one."""
    unfinished = path.with_name(f"{TEMPORARY}{path.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        git = pygit2.init_repository(str(unfinished), bare=True, initial_head="main")
        for key, value in _SETTINGS.items():
            git.config[key] = value
    except _REFUSALS as error:
        raise storage_error(path, OSError(*_system(error))) from error
    unfinished.rename(path)
    sync_folder(path.parent)


@contextmanager
def _reading(place: str) -> Iterator[None]:
    """Turn libgit2's errors inside into `StoreError`: what it cannot read is damaged."""
    try:
        yield
    except _REFUSALS as error:
        raise StoreError(
            f"{place}: {error}",
            hint="restore the repository from a backup, or remove the module with --purge, add it"
            " again and commit",
        ) from error


def _system(error: Exception) -> tuple[int | None, str]:
    """The number and the text of an error; libgit2's errors have a text only."""
    number = error.errno if isinstance(error, OSError) else None
    return number, os.strerror(number) if number else str(error)


def read_head(repository: Path) -> Head | None:
    """The newest commit in `repository`, or None before the first one."""
    return Repository(repository).head()
