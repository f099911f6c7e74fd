"""The metadata repository of one module on the upstream.

Reads objects and refs, moves the one branch.  New objects come as packs (`pack_writer`), but for
commits, which are loose (`loose`); the ref moves last, when everything it names is on the disk.  No
git library: none loads as fast as a commit is over.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from errno import EACCES, EIO, EMFILE, ENFILE, ENOMEM, EPERM
from pathlib import Path
from typing import NamedTuple

from huai_native._native import Packs
from huai_program.durable import replace_file, sync_folder
from huai_program.packs import TEMPORARY, remove_unfinished
from huai_program.refs import Refs
from huai_schema.codec.commits import CommitInfo, CommitObject, decode_commit
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
from huai_server.store.shallow import read_shallow, write_shallow

_PAST = "refs/huai/past/"
"""Of the histories that are over, each by the serial of its newest commit."""
_PENDING = "refs/huai/pending"
"""Of the commit that waits for signatures: its objects are as safe as any."""
_DROPPED = "refs/huai/dropped"
"""Of one that waits no more: somebody may have signed it, so its serial is used."""
_KEPT_BYTES = 4 << 20
"""Of objects: a commit reads most of them at most twice, and more kept ones make it no quicker."""
_HEAD = f"ref: {BRANCH}\n".encode()
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
_AUTHOR = "huai <huai@localhost>"


DAMAGE_HINT = (
    "restore the repository from a backup; or move it away and commit: then each downstream needs "
    "`huai-client sync --accept-rollback` once"
)
_NOT_DAMAGED = (EACCES, EPERM, EIO, EMFILE, ENFILE, ENOMEM)


class StoreError(HuaiError):
    """A repository that is missing or damaged."""

    exit_code = ExitCode.UNSOUND


class PendingCommitError(HuaiError):
    """A commit was made that waits for signatures; the branch is where it was."""

    exit_code = ExitCode.UNSIGNED


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
    cosign: Callable[[bytes], Sequence[bytes]] = lambda _: ()
    """The signatures of others, made before."""
    cosigners: int = 0
    """How many of these are needed."""


class Repository:
    """An `ObjectReader` over one bare repository."""

    def __init__(self, path: Path) -> None:
        """Open an existing repository; `StoreError` if there is none."""
        self.path = path
        with _reading(f"{path}: cannot open the metadata repository"):
            _check_repository(path)
        self._refs = Refs(path)
        self.packs = Packs(_KEPT_BYTES)
        """What the engine reads without asking `read` (`ObjectReader`)."""
        self.packs.add(os.fsencode(self.pack_folder))

    @classmethod
    def create(cls, path: Path) -> "Repository":
        """Make an empty repository at `path`, or open the one that is there."""
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
            for path in (self.path / "objects").glob(f"{UNFINISHED}*"):
                path.unlink(missing_ok=True)
            self._refs.remove_unfinished()

    def read(self, oid: bytes, kind: Kind) -> bytes:
        """The content of an object (`ObjectReader`)."""
        try:
            found = self.packs.find(oid) or read_loose(self.path, oid)
        except OSError as error:
            reason = f"the object cannot be read: {error.strerror}"
            raise FormatError(reason, oid.hex()) from error
        if found is None:
            raise FormatError("the object cannot be read: there is none of that id", oid.hex())
        if found[0] != kind:
            raise FormatError(f"a {kind} was expected", oid.hex())
        if object_id(kind, found[1]) != oid:
            raise FormatError("the object cannot be read: it has another id", oid.hex())
        return found[1]

    def names_branch(self) -> bool:
        """Whether HEAD, where a clone begins, names the branch."""
        try:
            content = (self.path / "HEAD").read_bytes()
        except OSError:
            return False
        return content == _HEAD

    def head(self) -> Head | None:
        """The newest commit, or None before the first one."""
        with _reading(f"{self.path}: {BRANCH}"):
            commit = self._refs.get(BRANCH)
        return None if commit is None else self._read_head(commit)[0]

    def history(self) -> Iterator[Head]:
        """All commits that are here, newest first: of the branch, then of the histories before."""
        past, shallow = self.past(), read_shallow(self.path)
        with _reading(f"{self.path}: {BRANCH}"):
            commit = self._refs.get(BRANCH)
        while commit is not None:
            head, parents = self._read_head(commit)
            parents = () if commit in shallow else parents
            yield head
            older = (each.commit for each in past if each.info.serial < head.info.serial)
            commit = next(iter(parents), None) or next(older, None)

    def past(self) -> list[Head]:
        """The newest commits of the histories that are over, newest first."""
        found = [self._read_head(commit)[0] for commit in self._ends().values()]
        return sorted(found, key=lambda head: -head.info.serial)

    def forget(self, past: Iterable[Head]) -> None:
        """Let nothing name these histories any more; the caller holds the module's lock."""
        wanted = {head.commit for head in past}
        with storage_errors(self.path):
            for name, commit in self._ends().items():
                if commit in wanted:
                    # What they named may go then, and must not be named after a power cut.
                    self._refs.delete(name)

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
        `now` in seconds since the epoch.  `PendingCommitError` if signatures of others are missing.
        """
        made = now or int(time.time())
        is_over = parent is not None and retention.is_full(self._length(parent))
        lines = [f"tree {tree.hex()}"]
        if parent and not is_over:
            lines.append(f"parent {parent.commit}")
        lines += (f"{who} {_AUTHOR} {made} +0000" for who in ("author", "committer"))
        message = info.encode() + (seal.promise.encode() if seal else "")
        data = "\n".join((*lines, "", message)).encode()
        if seal:
            signatures = seal.cosign(data)
            data = cosign(data, signatures)
            if len(signatures) < seal.cosigners:
                raise self._wait(PendingCommit.decode(data), seal.cosigners)
            data = join_commit(data, seal.sign(data))
        return self.publish(data, parent)

    def publish(self, data: bytes, former: Head | None) -> Head:
        """Move the branch from `former` to a commit, whose objects are on the disk already.

        Nothing waits for signatures any more then.
        """
        made = decode_commit(data)
        with storage_errors(self.path):
            commit = write_loose(self.path, "commit", data).hex()
            if former and former.commit not in made.parents:
                self._refs.set(f"{_PAST}{former.info.serial}", former.commit)
            self._refs.set(BRANCH, commit)
            for each in (_PENDING, _DROPPED):
                self._refs.delete(each)
        return _head(commit, data, made)

    def pending(self) -> tuple[str, PendingCommit] | None:
        """The commit that waits for signatures, and its hex id; None: none does."""
        found, head = self._waiting(_PENDING), self.head()
        if found and head and head.info.serial >= found[1].info.serial:
            return None  # a run that was killed published it, or another one
        return found

    def last_serial(self) -> int:
        """The greatest one of all commits, also of those that waited; 0: there is none."""
        head = self.head()
        waited = (self._waiting(each) for each in (_PENDING, _DROPPED))
        serials = [found[1].info.serial for found in waited if found]
        return max([*serials, head.info.serial if head else 0])

    def hold(self, pending: PendingCommit) -> None:
        """Let a commit wait, in the place of any other; its objects are on the disk already."""
        with storage_errors(self.path):
            commit = write_loose(self.path, "commit", pending.data).hex()
            self._refs.set(_PENDING, commit)

    def drop_pending(self) -> None:
        """Let no commit wait for signatures; the serial of the one that did is not used again."""
        found = self._waiting(_PENDING)
        if found is None:
            return
        with storage_errors(self.path):
            self._refs.set(_DROPPED, found[0])
            self._refs.delete(_PENDING)

    def _waiting(self, ref: str) -> tuple[str, PendingCommit] | None:
        with _reading(f"{self.path}: {ref}"):
            commit = self._refs.get(ref)
        if commit is None:
            return None
        try:
            return commit, PendingCommit.decode(self.read(bytes.fromhex(commit), "commit"))
        except FormatError as error:
            raise error.within(commit) from None

    def _wait(self, made: PendingCommit, needed: int) -> PendingCommitError:
        """Let a commit wait, or the one that does so already, which somebody may be signing."""
        former = self.pending()
        if former is None or made.replaces(former[1]):
            self.hold(made)
        else:
            made = former[1]
        return PendingCommitError(
            f"{made.info.module}: the commit with serial {made.info.serial} waits for "
            f"{needed - len(made.signatures)} more of {needed + 1} signatures",
            hint=f"huai-server key pending {made.info.module} hands it out to be signed; the last "
            "commit is intact",
        )

    def move(self, head: Head, former: Head | None) -> None:
        """Move the branch to a commit that was made elsewhere; its objects are on the disk.

        A history that it does not continue is over, or, if it goes back, forgotten.
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
        self.forget(past for past in self.past() if past.info.serial >= head.info.serial)

    def head_of(self, commit: str) -> Head:
        """A commit (hex id) that is here; `StoreError` if it cannot be read."""
        return self._read_head(commit)[0]

    def content(self, head: Head) -> tuple[bytes, bytes]:
        """The content of a commit and the id of its tree, as `Packs.send` takes them."""
        return self.read(bytes.fromhex(head.commit), "commit"), bytes.fromhex(head.tree)

    def tree_of(self, commit: str) -> bytes:
        """The id of a commit's tree."""
        return bytes.fromhex(self.head_of(commit).tree)

    def _has(self, commit: str) -> bool:
        oid = bytes.fromhex(commit)
        return oid in self.packs or read_loose(self.path, oid) is not None

    def _ends(self) -> dict[str, str]:
        """The refs of the histories that are over, and the commits that they name."""
        with _reading(f"{self.path}: {_PAST}"):
            found = self._refs.all().items()
        return {name: commit for name, commit in found if name.startswith(_PAST)}

    def _length(self, head: Head) -> int:
        """How many commits the history has that ends with `head`, the newest one."""
        ends = (name.removeprefix(_PAST) for name in self._ends())
        return head.info.serial - max((int(end) for end in ends if end.isdecimal()), default=0)

    def _read_head(self, commit: str) -> tuple[Head, tuple[str, ...]]:
        """A commit, and the ids of its parents; `StoreError` if it cannot be read."""
        with _reading(f"{self.path}: {commit}"):
            try:
                data = self.read(bytes.fromhex(commit), "commit")
            except FormatError as error:
                raise ValueError(error.message) from error
        try:
            made = decode_commit(data)
            return _head(commit, data, made), made.parents
        except FormatError as error:
            raise error.within(commit) from None


def _head(commit: str, data: bytes, made: CommitObject) -> Head:
    info = made.info()
    signed = split_commit(data) is not None
    valid_until = Promise.decode(made.message.decode()).valid_until if signed else 0
    return Head(commit, made.tree.hex(), made.time, info, valid_until)


def _check_repository(path: Path) -> None:
    """Raise an error unless git would take the folder for a repository."""
    if not (path / "HEAD").read_bytes().startswith(b"ref: "):
        raise ValueError("HEAD names no branch")
    for folder in ("objects", "refs"):
        if not (path / folder).is_dir():
            raise ValueError(f"there is no folder {folder!r}")


def _initialize(path: Path) -> None:
    """Make a repository beside its place, and rename it: a killed run leaves no half of one."""
    import shutil  # loads slowly, and is needed once

    unfinished = path.with_name(f"{TEMPORARY}{path.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    for folder in _FOLDERS:
        (unfinished / folder).mkdir(parents=True)
    for name, content in (("config", _CONFIG), ("HEAD", _HEAD)):
        replace_file(unfinished / name, content, unfinished / f"{name}.lock")
    unfinished.rename(path)
    sync_folder(path.parent)


@contextmanager
def _reading(place: str) -> Iterator[None]:
    """Turn errors inside into `StoreError`: what cannot be read is damaged."""
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in _NOT_DAMAGED:
            raise storage_error(Path(place), error) from error
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise StoreError(f"{place}: {said}", hint=DAMAGE_HINT) from error


def read_head(repository: Path) -> Head | None:
    """The newest commit in `repository`, or None before the first one."""
    return Repository(repository).head()
