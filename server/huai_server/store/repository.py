"""The metadata repository of one module on the upstream.

Reads objects and refs, moves the one branch.  New objects come as packs (`opened_writer`), except
commits, which are loose (`loose`); the ref moves last, when everything it names is on the disk.  No
git library is used: loading one would take longer than a commit.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import EACCES, EIO, EMFILE, ENFILE, ENOMEM, EPERM
from pathlib import Path
from typing import NamedTuple

from huai_native._native import Packs
from huai_program.durable import replace_file, sync_folder
from huai_program.packs import TEMPORARY, remove_unfinished
from huai_program.refs import Refs
from huai_program.shallow import read_shallow, write_shallow
from huai_schema.codec.commits import CommitInfo, CommitObject, decode_commit, encode_commit
from huai_schema.codec.descriptor import Descriptor, read_root
from huai_schema.codec.pending import PendingCommit
from huai_schema.codec.signing import Promise, cosign, join_commit, split_commit
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.git.objects import BRANCH, Kind, object_id
from huai_schema.layout.snapshot import Snapshot
from huai_server.config.retention import FOREVER, Retention
from huai_server.state.errors import storage_error, storage_errors
from huai_server.store.loose import UNFINISHED, read_loose, write_loose
from huai_server.store.replaced import remove_replaced

_PAST = "refs/huai/past/"
"""The prefix of the refs of finished histories, each with the serial of its newest commit."""
_PENDING = "refs/huai/pending"
"""The ref of the commit that waits for signatures, which keeps its objects."""
_DROPPED = "refs/huai/dropped"
"""The ref of one that waits no more: it may have been signed, so its serial is used."""
_KEPT_BYTES = 4 << 20
"""Bytes of cached objects: a commit reads few of them twice, so more would not help."""
HEAD = f"ref: {BRANCH}\n".encode()
"""The file in which a repository names the branch where a clone begins."""
_CONFIG = b"""\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
[gc]
\tauto = 0
[repack]
\twriteBitmaps = false
[receive]
\tdenyNonFastForwards = true
[transfer]
\thideRefs = refs/huai
"""
_FOLDERS = ("objects/info", "objects/pack", "refs/heads", "refs/tags")


DAMAGE_HINT = (
    "restore the repository from a backup; or move it away and commit: then each downstream needs "
    "`huai-client sync --accept-rollback` once"
)
_NOT_DAMAGED = (EACCES, EPERM, EIO, EMFILE, ENFILE, ENOMEM)


class StoreError(HuaiError):
    """A repository that is missing or damaged."""

    exit_code = ExitCode.UNSOUND


class NoCommitError(HuaiError):
    """A module without a commit."""

    exit_code = ExitCode.UNKNOWN_MODULE

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name}: the module has no commit yet", hint=f"run: huai-server commit {name}"
        )


class PendingCommitError(HuaiError):
    """A commit was made that waits for signatures; the branch did not move."""

    exit_code = ExitCode.UNSIGNED


class Head(NamedTuple):
    """A commit, usually the newest of a module."""

    commit: str
    """The hex id."""
    tree: str
    """The hex id of the commit's tree."""
    time: int
    """The time of the commit, seconds since the epoch."""
    info: CommitInfo
    valid_until: int = 0
    """The end of its signature's validity, seconds since the epoch; 0 if unsigned."""


class Seal(NamedTuple):
    """The parts of a signature."""

    promise: Promise
    sign: Callable[[bytes], bytes]
    """Returns the signature of a commit object."""
    cosign: Callable[[bytes], Sequence[bytes]] = lambda _: ()
    """Returns the cosigners' signatures of a commit object, as far as they were made before."""
    cosigners: int = 0
    """The number of cosigners' signatures that are needed."""


class Repository:
    """An `ObjectReader` for one bare repository, which can also move its refs; needs no close.

    Reading raises `StoreError` or `FormatError` for damage, and `StorageError` if the system
    refuses. Moving a ref raises `LockedError` if git holds its lock for 30 s.
    """

    def __init__(self, path: Path) -> None:
        """Open an existing repository; raises `StoreError` if it is missing or malformed.

        Raises `StorageError` if the system refuses to read it.
        """
        self.path = path
        with _reading(f"{path}: cannot open the metadata repository"):
            _check_repository(path)
        self._refs = Refs(path)
        self.packs = Packs(_KEPT_BYTES)
        """The packs that the engine reads without calling `read` (`ObjectReader`)."""
        self.packs.add(os.fsencode(self.pack_folder))

    @classmethod
    def create(cls, path: Path) -> "Repository":
        """Make an empty repository at `path`, or open the existing one.

        Raises `StorageError`, or `StoreError` for a malformed one.
        """
        with storage_errors(path):
            if not path.exists():
                _initialize(path)
        return cls(path)

    @property
    def pack_folder(self) -> Path:
        """Return the folder of the packs."""
        return self.path / "objects" / "pack"

    def remove_unfinished(self) -> None:
        """Delete the remains of a killed run, and packs replaced long enough ago.

        The caller holds the module's lock.
        """
        with storage_errors(self.path):
            remove_unfinished(self.pack_folder)
            remove_replaced(self.pack_folder, time.time())
            for path in (self.path / "objects").glob(f"{UNFINISHED}*"):
                path.unlink(missing_ok=True)
            self._refs.remove_unfinished()

    def read(self, oid: bytes, kind: Kind) -> bytes:
        """Return an object's content (`ObjectReader`), after checking its id.

        Raises `FormatError` if it is missing, unreadable, damaged or of another kind.
        """
        try:
            read_object = self._find(oid)
        except OSError as error:
            reason = f"the object cannot be read: {error.strerror}"
            raise FormatError(reason, oid.hex()) from error
        if read_object is None:
            raise FormatError("the object cannot be read: it is missing", oid.hex())
        if read_object[0] != kind:
            raise FormatError(f"a {kind} was expected", oid.hex())
        if object_id(kind, read_object[1]) != oid:
            raise FormatError("the object cannot be read: its id is wrong", oid.hex())
        return read_object[1]

    def _find(self, oid: bytes) -> tuple[Kind, bytes] | None:
        """Return kind and content of an object, unchecked, or None if it is missing."""
        # Maintenance may have packed a loose object since its first look into the packs.
        return self.packs.find(oid) or read_loose(self.path, oid) or self.packs.find(oid)

    def head(self) -> Head | None:
        """Return the newest commit, or None before the first one.

        Raises `StoreError` if it cannot be read, `FormatError` if it is malformed.
        """
        with _reading(f"{self.path}: {BRANCH}"):
            commit = self._refs.get(BRANCH)
        return None if commit is None else self._read_head(commit)[0]

    def history(self) -> Iterator[Head]:
        """Yield all stored commits, newest first: of the branch, then of finished histories.

        A finished history whose serials are not below the last one is skipped.
        """
        ends, shallow = iter(self.ends()), read_shallow(self.path)
        with _reading(f"{self.path}: {BRANCH}"):
            commit = self._refs.get(BRANCH)
        while commit is not None:
            head, parents = self._read_head(commit)
            parents = () if commit in shallow else parents
            yield head
            older = (commit for serial, commit in ends if serial < head.info.serial)
            commit = next(iter(parents), None) or next(older, None)

    def past(self) -> list[Head]:
        """Return the last commit of each finished history, newest first."""
        return [self._read_head(commit)[0] for _, commit in self.ends()]

    def ends(self) -> list[tuple[int, str]]:
        """Return the serials and hex ids of these commits, newest first, without reading them."""
        refs = ((name.removeprefix(_PAST), each) for name, each in self._past_refs().items())
        return sorted(((int(end), each) for end, each in refs if end.isdecimal()), reverse=True)

    def forget_histories(self, ends: Iterable[str]) -> None:
        """Remove the refs of the histories that end with the commits `ends` (hex ids).

        The caller holds the module's lock.
        """
        forgotten = set(ends)
        with storage_errors(self.path):
            for name, commit in self._past_refs().items():
                if commit in forgotten:
                    # Their objects may be removed then, so no ref may name them after a power cut.
                    self._refs.delete(name)

    def snapshot(self, head: Head) -> tuple[Descriptor, Snapshot]:
        """Return the descriptor and the snapshot of a commit; `FormatError` if damaged.

        The snapshot reads its objects from this repository when they are needed.
        """
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
        """Make a commit of the git tree with the id `tree`, and move the branch to it.

        The tree's objects are on the disk, `parent` is the branch's commit (None for the first),
        and the caller holds the module's lock.  If the history of `parent` is full by `retention`,
        it gets a ref, and a new one begins.  Without `seal`, the commit is unsigned.  If
        cosignatures are missing, it becomes the pending commit instead, and `PendingCommitError`
        is raised.  `now` is its time in seconds since the epoch, None for the present.
        """
        seconds = now or int(time.time())
        is_over = parent is not None and retention.is_full(self._length(parent))
        follows = parent.commit if parent and not is_over else None
        message = info.encode() + (seal.promise.encode() if seal else "")
        data = encode_commit(tree, follows, seconds, message)
        if seal:
            signatures = seal.cosign(data)
            data = cosign(data, signatures)
            if len(signatures) < seal.cosigners:
                raise self._hold(PendingCommit.decode(data), seal.cosigners)
            data = join_commit(data, seal.sign(data))
        return self.publish(data, parent)

    def publish(self, data: bytes, former: Head | None) -> Head:
        """Write the commit object `data`, move the branch from `former` to it, and return it.

        All other objects are already on the disk.  If `former` is not a parent, its history gets a
        ref.  The pending and the dropped commit are forgotten.
        """
        commit_object = decode_commit(data)
        with storage_errors(self.path):
            commit = write_loose(self.path, "commit", data).hex()
            if former and former.commit not in commit_object.parents:
                self._refs.set(f"{_PAST}{former.info.serial}", former.commit)
            self._refs.set(BRANCH, commit)
            for ref in (_PENDING, _DROPPED):
                self._refs.delete(ref)
        return _make_head(commit, data, commit_object)

    def pending(self) -> tuple[str, PendingCommit] | None:
        """Return hex id and content of the pending commit; None without one.

        One whose serial the branch has reached does not count.
        """
        waiting, head = self._pending_commit(_PENDING), self.head()
        if waiting and head and head.info.serial >= waiting[1].info.serial:
            return None  # it was published by a killed run, or superseded
        return waiting

    def last_serial(self) -> int:
        """Return the greatest serial that may have been signed, or 0.

        That is of the branch's commit, the pending one, and the last dropped one.
        """
        head = self.head()
        waited = (self._pending_commit(each) for each in (_PENDING, _DROPPED))
        serials = [found[1].info.serial for found in waited if found]
        return max([*serials, head.info.serial if head else 0])

    def set_pending(self, pending: PendingCommit) -> None:
        """Write a commit, and make it the pending one, in place of any former one.

        All other objects are already on the disk.
        """
        with storage_errors(self.path):
            commit = write_loose(self.path, "commit", pending.data).hex()
            self._refs.set(_PENDING, commit)

    def drop_pending(self) -> None:
        """Drop the pending commit, if there is one; its serial is not used again."""
        waiting = self._pending_commit(_PENDING)
        if waiting is None:
            return
        with storage_errors(self.path):
            self._refs.set(_DROPPED, waiting[0])
            self._refs.delete(_PENDING)

    def _pending_commit(self, ref: str) -> tuple[str, PendingCommit] | None:
        """Return hex id and content of the commit that `ref` names, or None without the ref.

        Raises `FormatError` if it is missing or damaged.
        """
        with _reading(f"{self.path}: {ref}"):
            commit = self._refs.get(ref)
        if commit is None:
            return None
        try:
            return commit, PendingCommit.decode(self.read(bytes.fromhex(commit), "commit"))
        except FormatError as error:
            raise error.within(commit) from None

    def _hold(self, pending: PendingCommit, needed: int) -> PendingCommitError:
        """Make a commit pending unless it need not replace the pending one; return the error.

        `PendingCommit.replaces` decides; `needed` is the number of cosignatures that a commit
        needs.
        """
        former = self.pending()
        if former is None or pending.replaces(former[1]):
            self.set_pending(pending)
        else:
            pending = former[1]
        return PendingCommitError(
            f"{pending.info.module}: the commit with serial {pending.info.serial} waits for "
            f"{needed - len(pending.signatures)} more of {needed + 1} signatures",
            hint=f"huai-server key pending {pending.info.module} FILE writes it to FILE for "
            "signing; the last commit is intact",
        )

    def move_branch(self, head: Head, former: Head | None) -> None:
        """Move the branch to a commit that was made elsewhere; its objects are on the disk.

        If `head` does not follow `former` (None before the first), the old history gets a ref.
        Histories whose serials are not below that of `head` lose theirs.  A `head` whose parent is
        missing is recorded as shallow.
        """
        _, parents = self._read_head(head.commit)
        shallow = {each for each in read_shallow(self.path) if self._has(each)}
        if not all(map(self._has, parents)):
            shallow.add(head.commit)
        with storage_errors(self.path):
            write_shallow(self.path, shallow)
            if former and former.commit not in parents and former.info.serial < head.info.serial:
                self._refs.set(f"{_PAST}{former.info.serial}", former.commit)
            self._refs.set(BRANCH, head.commit)
        self.forget_histories(end for serial, end in self.ends() if serial >= head.info.serial)

    def head_of(self, commit: str) -> Head:
        """Return a stored commit (hex id).

        Raises `StoreError` if it cannot be read, `FormatError` if it is malformed.
        """
        return self._read_head(commit)[0]

    def content(self, head: Head) -> tuple[bytes, bytes]:
        """Return the content of a commit and the id of its tree, for `Packs.send`."""
        return self.read(bytes.fromhex(head.commit), "commit"), bytes.fromhex(head.tree)

    def _has(self, commit: str) -> bool:
        """True if the repository has the commit (hex id)."""
        return self._find(bytes.fromhex(commit)) is not None

    def _past_refs(self) -> dict[str, str]:
        """Return the commit (hex id) of each finished history's ref, by the ref's full name."""
        with _reading(f"{self.path}: {_PAST}"):
            refs = self._refs.all().items()
        return {name: commit for name, commit in refs if name.startswith(_PAST)}

    def _length(self, head: Head) -> int:
        """Return the number of commits in the branch's history, which ends with `head`."""
        return head.info.serial - max((serial for serial, _ in self.ends()), default=0)

    def _read_head(self, commit: str) -> tuple[Head, tuple[str, ...]]:
        """Return a commit (hex id) and the hex ids of its parents.

        Raises `StoreError` if it cannot be read, `FormatError` if it is malformed.
        """
        with _reading(f"{self.path}: {commit}"):
            try:
                data = self.read(bytes.fromhex(commit), "commit")
            except FormatError as error:
                raise ValueError(error.message) from error
        try:
            commit_object = decode_commit(data)
            return _make_head(commit, data, commit_object), commit_object.parents
        except FormatError as error:
            raise error.within(commit) from None


def _make_head(commit: str, data: bytes, commit_object: CommitObject) -> Head:
    """Return the `Head` of the commit object `data`, decoded too; `FormatError` if malformed."""
    info = commit_object.info()
    signed = split_commit(data) is not None
    valid_until = Promise.decode(commit_object.message.decode()).valid_until if signed else 0
    return Head(commit, commit_object.tree.hex(), commit_object.time, info, valid_until)


def _check_repository(path: Path) -> None:
    """Raise `ValueError` or `OSError` unless git would accept the folder as a repository."""
    if not (path / "HEAD").read_bytes().startswith(b"ref: "):
        raise ValueError("HEAD must name a branch")
    for folder in ("objects", "refs"):
        if not (path / folder).is_dir():
            raise ValueError(f"the folder {folder!r} is missing")


def _initialize(path: Path) -> None:
    """Make a repository under a temporary name, and rename it when it is complete."""
    import shutil  # loads slowly, and is needed once

    unfinished = path.with_name(f"{TEMPORARY}{path.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    for folder in _FOLDERS:
        (unfinished / folder).mkdir(parents=True)
    for name, content in (("config", _CONFIG), ("HEAD", HEAD)):
        replace_file(unfinished / name, content, unfinished / f"{name}.lock")
    unfinished.rename(path)
    sync_folder(path.parent)


@contextmanager
def metadata_errors(name: str) -> Iterator[None]:
    """Convert a `FormatError` to a `StoreError`: the repository of the module `name` is damaged."""
    try:
        yield
    except FormatError as error:
        raise StoreError(
            f"{name}: {error.message}",
            hint=f"run: huai-server check {name}, which names what is damaged",
        ) from error


@contextmanager
def _reading(place: str) -> Iterator[None]:
    """Convert `OSError` and `ValueError` of the block to `StorageError` or `StoreError`.

    It is a `StorageError` if the system refuses or has no resources, and the repository may be
    fine.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in _NOT_DAMAGED:
            raise storage_error(Path(place), error) from error
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise StoreError(f"{place}: {reason}", hint=DAMAGE_HINT) from error


def read_branch(repository: Path) -> str | None:
    """Return the commit (hex id) of the branch, quickly; None if it is missing or unreadable.

    Rule: no response is cached for None, because a wrong id would send an old one as the newest.
    """
    with suppress(OSError, ValueError):
        return Refs(repository).get(BRANCH)
    return None
