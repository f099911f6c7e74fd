"""The metadata repository of one module on the downstream.

Fetches the newest commit without history, reads objects, and keeps what refs name: the applied
commit and those that an interrupted run was going for.  All of it can be fetched anew, so a damaged
repository is thrown away, never repaired.  Objects are read natively, refs are files; the program
git is for upstreams that have no static files.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from huai_client.metadata.checks import TooLargeError
from huai_client.metadata.commit import Commit
from huai_client.metadata.curl.errors import printable
from huai_client.metadata.failover import UntrustedError
from huai_client.metadata.git import GitObject, LocalRepository, write_shallow
from huai_client.metadata.git.incoming import IncomingPack
from huai_client.metadata.git.limits import Work
from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.known_heads import REFUSED, KnownHead, KnownHeads
from huai_client.metadata.newest import Newest, find_newest
from huai_client.metadata.packs import (
    drop_unfinished,
    exceeds,
    exchange_packs,
    pack_sizes,
    remove_packs,
)
from huai_client.metadata.static_fetch import StaticFetch
from huai_client.run.deadline import NEVER, Deadline
from huai_native._native import Packs
from huai_program.disk_hints import DISK_HINTS
from huai_program.refs import DamagedRefError, Refs
from huai_schema.codec.commits import decode_commit
from huai_schema.codec.descriptor import read_root
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.git.objects import BRANCH, Kind, ObjectReader
from huai_schema.layout.snapshot import Snapshot

if TYPE_CHECKING:
    from huai_client.metadata.git_fetch import GitFetch

_FETCHED = "refs/huai/fetched"
_PARTLY = "refs/huai/partly"
"""A commit on the way to the newest one, all of which is here."""
_KEPT = "refs/huai/kept/"
_HISTORY = "refs/huai/history/"
"""Commits that were applied before, numbered: for people, not for the next fetch."""
_PACKS_MAX = 40
_KEPT_BYTES = 24 << 20
"""Of objects: a sync looks at most of them two or three times."""
_SPARE_WORK = 16 << 30
"""Bytes of work that all reads of a run may cost beyond what their objects are worth: seconds."""
_REFUSED_SECONDS = 86_400.0
"""For so long a refused pack is not fetched again: an upstream may mend the one of its commit."""
_REFUSED_HINT = (
    "the upstream has to mend it; it is fetched again after a day, with --adopt or another "
    "configuration of the module at once"
)
_HEAD = b"ref: "
_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
_FOLDERS = ("objects", "refs")
Judge = Callable[[str, bytes, ObjectReader], None]
"""Raises for a commit, by its id and its content, that is not to be believed."""


class StoreError(HuaiError):
    """The repository cannot be written."""

    exit_code = ExitCode.FILE_IO


class DamagedRepositoryError(HuaiError):
    """Objects that should be in the repository are not, or cannot be read."""

    exit_code = ExitCode.UNSOUND


class RefusedBeforeError(FormatError):
    """A commit that an earlier run refused, because of its pack or of what it says."""

    def __init__(self, reason: str, place: str) -> None:
        """`reason` is what the earlier run said."""
        super().__init__(f"{reason}; refused before", place)
        self.hint = _REFUSED_HINT


class Repository:
    """An `ObjectReader` over the downstream's copy of the metadata."""

    def __init__(self, path: Path, *, timeout: int = 600, make: bool = True) -> None:
        """Open the repository at `path`, made anew if it is missing or cannot be opened.

        `timeout`: seconds without any data after which a fetch fails.  Nobody else may write
        to it.  Without `make` it is only to be read: `DamagedRepositoryError` if it cannot be.
        """
        self._path = path
        self._names = Refs(path)
        self.packs = Packs(_KEPT_BYTES, _SPARE_WORK)
        """What the engine reads by itself."""
        self.packs.add(_packs_of(path))
        self._borrowed: list[Path] = []
        self._timeout = timeout
        self._deadline = NEVER
        self._arrived: list[Path] = []
        """Packs that came in this run, and are not accepted yet."""
        self._former: str | None = None
        """What `_FETCHED` was before them."""
        self._refused = KnownHeads(path, REFUSED, lasts=_REFUSED_SECONDS)
        self._basis = ""
        self._sources: dict[str, str] = {}
        """The addresses from which commits came, by commit."""
        if not _is_repository(path):
            if not make:
                raise self._damaged("this is not a repository", "metadata")
            self._make()

    def borrow(self, other: Path, commit: str) -> None:
        """Read what the repository at `other` holds as well, `commit` among it; offer that one."""
        self.packs.add(_packs_of(other))
        self._borrowed.append(other)
        self.keep([commit])

    def start_over(self) -> None:
        """Throw everything away."""
        self._make()

    def accept(self) -> None:
        """Keep what was fetched so far, whatever comes later in this run."""
        self._arrived.clear()

    def judge_by(self, facts: object) -> None:
        """Take `facts` as that on which `refuse` depends: with others a commit is fetched again."""
        self._basis = blake2b(repr(facts).encode(), digest_size=8).hexdigest()

    def refuse(self, commit: str, error: UntrustedError | FormatError | TooLargeError) -> None:
        """Withdraw, and do not fetch `commit` again for a day."""
        if self._arrived and commit in self._sources:
            self._remember(f"{self._sources[commit]} {self._basis}", commit, error)
        self.withdraw()

    def _remember(self, address: str, commit: str, error: HuaiError) -> None:
        reason = printable(f"{error.exit_code:d} {error.message}").encode("ascii", "replace")
        self._refused.set(address, KnownHead(commit, reason.decode()[:1000]))

    def withdraw(self) -> None:
        """Forget what was fetched since `accept`: it is refused, and must not pile up here."""
        if not self._arrived:
            return
        self._forget_hashes()
        with suppress(OSError, DamagedRefError):
            self._names.delete(_PARTLY)
            if self._former is not None:
                self._names.set(_FETCHED, self._former)
            else:
                self._names.delete(_FETCHED)
            remove_packs(self._arrived)
        self.packs.forget()
        self._arrived.clear()

    def _make(self) -> None:
        self._arrived.clear()
        self.packs.forget()
        try:
            self._forget_hashes()
            if self._path.exists():
                shutil.rmtree(self._path)
            for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
                (self._path / folder).mkdir(parents=True)
            (self._path / "config").write_bytes(_CONFIG)
            (self._path / "HEAD").write_bytes(_HEAD + BRANCH.encode() + b"\n")
        except OSError as error:
            raise self._unwritable(error) from error

    @property
    def listing_hashes(self) -> Path:
        """Of the objects that are here; the file goes before any of them does.

        Else another object could come under the id of one that is gone, and pass for it.
        """
        return self._path / "listing-hashes"

    def _forget_hashes(self) -> None:
        self.listing_hashes.unlink(missing_ok=True)

    def newest_commit(self, metadata: MetadataUrl) -> str:
        """Return the commit that the upstream's branch points to."""
        heads = KnownHeads(self._path)
        return find_newest(metadata, timeout=self._timeout, heads=heads).commit

    def fetch(
        self,
        metadata: MetadataUrl,
        deadline: Deadline = NEVER,
        newest: Newest | None = None,
        judge: Judge = lambda *_: None,
    ) -> Commit:
        """Bring the newest commit here; only what this side does not have is sent.

        `newest` is what the upstream has just said of it; None: it is asked first.  `judge` sees
        the commit before anything else of it is read; what it refuses does not stay.
        """
        drop_unfinished(self._path)
        newest = newest or find_newest(
            metadata, timeout=self._timeout, deadline=deadline, heads=KnownHeads(self._path)
        )
        self._bring(newest, deadline)
        urls = newest.static.content_urls if newest.static else ()
        return self._judged(newest.commit, judge)._replace(relay_urls=urls)

    def _judged(self, commit: str, judge: Judge) -> Commit:
        try:
            judge(commit, self.read(bytes.fromhex(commit), "commit"), self)
        except (UntrustedError, FormatError) as error:
            self.refuse(commit, error)
            raise
        except HuaiError:
            self.withdraw()
            raise
        return self.commit(commit)

    def _bring(self, newest: Newest, deadline: Deadline) -> None:
        """Fetch a commit, and let `_FETCHED` name it."""
        try:
            former = self.fetched
            try:
                new = self._way_to(newest, deadline).complete()
            except HuaiError:
                self.packs.forget()  # what came may have gone again
                raise
            if not self._arrived:
                self._former = former
            self._arrived += new
            if not new:
                self.packs.forget()  # it may have taken the place of a torn one of its name
            if not self.has(newest.commit):
                raise self._damaged("what was fetched cannot be read", newest.commit)
            self._refused.forget(newest.found.address)
            self._sources[newest.commit] = newest.found.address
            self._names.set(_FETCHED, newest.commit)
            self._names.delete(_PARTLY)
        except OSError as error:
            raise self._unwritable(error) from error

    def fetch_refused(self) -> None:
        """Forget which commits were refused, so that they are fetched again."""
        (self._path / REFUSED).unlink(missing_ok=True)

    def _way_to(self, newest: Newest, deadline: Deadline) -> "GitFetch | StaticFetch":
        url = newest.found
        for address in (url.address, f"{url.address} {self._basis}"):
            known = self._refused.get(address)
            if known is not None and known.commit == newest.commit:
                raise _refused_before(known.detail, str(url))

        def refused(error: FormatError) -> None:
            self._remember(url.address, newest.commit, error)

        complete = self._named(_FETCHED, _KEPT, _PARTLY)
        older = self._named(_HISTORY) - complete
        here = LocalRepository(
            self._path, self, complete, older, deadline, refused, tuple(self._borrowed)
        )
        if newest.static is None:
            from huai_client.metadata.git_fetch import GitFetch  # few upstreams need it

            return GitFetch(newest, here, timeout=self._timeout)
        came = partial(self._names.set, _PARTLY)
        return StaticFetch(newest, newest.static, here, timeout=self._timeout, came=came)

    def _named(self, *prefixes: str) -> set[str]:
        """The commits that refs name: everything in them is here."""
        commits = {commit for name, commit in self._refs().items() if name.startswith(prefixes)}
        return {commit for commit in commits if self.has(commit)}

    def _refs(self) -> dict[str, str]:
        """All refs and the commits they name; `DamagedRepositoryError` if one names none."""
        try:
            return self._names.all()
        except DamagedRefError as error:
            name, reason = error.args
            raise self._damaged(reason, name) from error
        except OSError as error:
            raise self._damaged(str(error), "refs") from error

    def commit(self, commit: str) -> Commit:
        """A commit that is here; `DamagedRepositoryError` if it is not."""
        found = self.find(bytes.fromhex(commit))
        if found is None or found.kind != "commit":
            raise self._damaged("there is no such commit", commit)
        head = decode_commit(found.data)
        info = head.info()
        descriptor, tree = read_root(head.tree, self)
        snapshot = Snapshot(self, tree, info.totals.entries)
        return Commit(commit, info, head.time, descriptor, snapshot)

    def has(self, commit: str) -> bool:
        """Whether a commit is here."""
        found = self.find(bytes.fromhex(commit))
        return found is not None and found.kind == "commit"

    def keep(self, commits: Iterable[str]) -> None:
        """Name exactly these commits, so that they stay and are offered in the next fetch."""
        wanted = set(commits)
        drop_unfinished(self._path)
        try:
            kept = {name for name in self._refs() if name.startswith(_KEPT)}
            for name in sorted({_KEPT + commit for commit in wanted} - kept):
                self._names.set(name, name.removeprefix(_KEPT))
            for name in sorted(kept):
                if name.removeprefix(_KEPT) not in wanted:
                    self._names.delete(name)
        except OSError as error:
            raise self._unwritable(error) from error

    def keep_history(self, commit: str | None, most: int) -> None:
        """Let a commit that was applied stay for a while, beside the last `most` of that kind."""
        try:
            refs = self._history_refs()
            newest = self._refs()[refs[-1]] if refs else None
            if commit is not None and commit != newest and most and self.has(commit):
                number = int(refs[-1].removeprefix(_HISTORY)) + 1 if refs else 1
                refs.append(f"{_HISTORY}{number:08d}")
                self._names.set(refs[-1], commit)
            for name in refs[: max(0, len(refs) - most)]:
                self._names.delete(name)
        except OSError as error:
            raise self._unwritable(error) from error

    def history(self) -> list[str]:
        """The commits that `keep_history` kept, newest first."""
        refs = self._refs()
        commits = [refs[name] for name in self._history_refs()]
        return [commit for commit in reversed(commits) if self.has(commit)]

    def _history_refs(self) -> list[str]:
        return sorted(name for name in self._refs() if name.startswith(_HISTORY))

    @property
    def fetched(self) -> str | None:
        """The newest commit that was fetched, whether it was applied or not."""
        return self._refs().get(_FETCHED)

    @property
    def packed(self) -> int:
        """The bytes of all packs, those that are borrowed or not accepted yet included."""
        try:
            return sum(chain.from_iterable(map(pack_sizes, (self._path, *self._borrowed))))
        except OSError as error:
            raise self._damaged(str(error), "objects/pack") from error

    def read(self, oid: bytes, kind: Kind) -> bytes:
        """The content of an object (`ObjectReader`).

        Raises `DamagedRepositoryError` if it cannot be read, `FormatError` if it is another.
        """
        found = self.find(oid)
        if found is None:
            raise self._damaged("the object is not here", oid.hex())
        if found.kind != kind:
            raise FormatError(f"a {kind} was expected", oid.hex())
        return found.data

    @contextmanager
    def until(self, deadline: Deadline) -> Iterator[None]:
        """Within, objects are read before `deadline` only: `TimeUpError`."""
        self._deadline = deadline
        try:
            yield
        finally:
            self._deadline = NEVER

    def find(self, oid: bytes) -> GitObject | None:
        """An object of any kind, if it is here (`Objects`).

        Raises `DamagedRepositoryError` for one that cannot be read, or is unlike any that came.
        """
        if self._deadline is not NEVER:
            self._deadline.check("the metadata are here, and nothing was changed")
        try:
            found = self.packs.find(oid)
        except (FormatError, OSError) as error:
            raise self._damaged(str(error), oid.hex()) from error
        return GitObject(*found) if found else None

    def record(self, oid: bytes) -> bytes | None:
        """An object as a whole one stands in a pack, if it is here (`Packed`)."""
        try:
            return self.packs.record(oid)
        except (FormatError, OSError) as error:
            raise self._damaged(str(error), oid.hex()) from error

    def chain(self, oid: bytes) -> list[tuple[bytes, bytes]]:
        """An object that is here, and what it is made from, as they stand in a pack (`Packed`)."""
        try:
            return self.packs.chain(oid) or []
        except (FormatError, OSError) as error:
            raise self._damaged(str(error), oid.hex()) from error

    def __contains__(self, oid: bytes) -> bool:
        """Whether an object is here (`Objects`)."""
        try:
            return oid in self.packs
        except (FormatError, OSError) as error:
            raise self._damaged(str(error), oid.hex()) from error

    def repack(self, limit: int = _PACKS_MAX) -> None:
        """If there are more than `limit` packs, or they are too large, make one of what is kept.

        May be interrupted anywhere.  A failure changes nothing; the next run tries again.
        """
        if not exceeds(self._path, limit):
            return
        with suppress(FormatError, OSError):
            self._forget_hashes()
            exchange_packs(self._path, self._write_pack)
        self.packs.forget()

    def _write_pack(self, folder: Path) -> None:
        """Write one pack of all that kept and earlier commits hold."""
        for name in (_FETCHED, _PARTLY):
            self._names.delete(name)
        # Oldest first: what came as a delta against an older one stays one.
        commits = [*reversed(self.history())]
        commits += sorted(self._named(_KEPT) - {*commits})
        heads = [(data, decode_commit(data).tree) for data in map(self._commit_text, commits)]
        own = Packs(_KEPT_BYTES)
        own.add(_packs_of(self._path))
        with IncomingPack(folder) as pack:
            own.pack(heads, pack.write)
            pack.complete(self, Work())
            pack.install()
        write_shallow(self._path, commits)

    def _commit_text(self, commit: str) -> bytes:
        return self.read(bytes.fromhex(commit), "commit")

    def _damaged(self, reason: str, name: str) -> DamagedRepositoryError:
        return DamagedRepositoryError(
            f"{self._path}: {name}: {reason}",
            hint="huai-client sync NAME --adopt fetches the metadata anew",
        )

    def _unwritable(self, error: OSError) -> StoreError:
        hint = DISK_HINTS.get(error.errno or 0, "run as the user that the state belongs to")
        return StoreError(f"{self._path}: {error}", hint=hint)


def _is_repository(path: Path) -> bool:
    """Whether what git asks for is there: what lacks a part is made anew."""
    try:
        sound = (path / "HEAD").read_bytes().startswith(_HEAD)
        sound = sound and (path / "config").read_bytes().startswith(_CONFIG[:6])
    except OSError:
        return False
    return sound and all((path / folder).is_dir() for folder in _FOLDERS)


def _packs_of(repository: Path) -> bytes:
    return os.fsencode(repository / "objects" / "pack")


def _refused_before(detail: str, place: str) -> FormatError | UntrustedError:
    """The error for a commit that an earlier run refused; `detail`: exit code and reason."""
    code, _, reason = detail.partition(" ")
    if code == f"{UntrustedError.exit_code:d}":
        return UntrustedError(f"{place}: {reason}; refused before", hint=_REFUSED_HINT)
    return RefusedBeforeError(reason, place)
