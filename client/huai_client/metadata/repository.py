"""The metadata repository of one module on the downstream.

Fetches the newest commit without history, reads objects, and keeps what refs name: the applied
commit and those that an interrupted run attempted.  All of it can be fetched again, so a damaged
repository is replaced, never repaired.  Objects are read natively, refs are files; the program
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

from huai_client.metadata.checks import ENTRIES_FREE, TooLargeError
from huai_client.metadata.commit import Commit
from huai_client.metadata.curl.errors import printable
from huai_client.metadata.failover import UntrustedError
from huai_client.metadata.git.connectivity import find_missing, read_commit
from huai_client.metadata.git.incoming import IncomingPack
from huai_client.metadata.git.limits import WorkLimit
from huai_client.metadata.git.local import LocalRepository
from huai_client.metadata.git.objects import GitObject
from huai_client.metadata.http import (
    ListedUrl,
    MetadataUrl,
    UpstreamDownError,
    UpstreamError,
    is_http,
)
from huai_client.metadata.known_heads import REFUSED, KnownHead, KnownHeads
from huai_client.metadata.newest import Newest, find_newest
from huai_client.metadata.packs import (
    drop_unfinished,
    exchange_packs,
    needs_repack,
    pack_sizes,
)
from huai_client.metadata.source.record import RECORD_NAME
from huai_client.metadata.sparse_commits import SparseCommits
from huai_client.metadata.static_fetch import StaticFetch, is_large
from huai_client.run.options import NEVER, Deadline
from huai_native._native import Filter, Packs
from huai_program.disk_hints import DISK_HINTS
from huai_program.listing_hashes import LISTING_HASHES
from huai_program.packs import remove_packs
from huai_program.refs import DamagedRefError, Refs
from huai_program.shallow import write_shallow
from huai_schema.codec.commits import decode_commit
from huai_schema.codec.descriptor import read_root
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.git.objects import BRANCH, Kind, ObjectReader
from huai_schema.layout.snapshot import Snapshot

if TYPE_CHECKING:
    from huai_client.filters import Rules
    from huai_client.metadata.git_fetch import GitFetch

_FETCHED = "refs/huai/fetched"
_PARTLY = "refs/huai/partly"
"""A commit on the way to the newest one, whose objects are complete."""
_KEPT = "refs/huai/kept/"
_HISTORY = "refs/huai/history/"
"""Commits that were applied before, numbered: for people, not for the next fetch."""
_PACKS_MAX = 40
_KEPT_BYTES = 24 << 20
"""The cache of objects: a sync reads most of them two or three times."""
_SPARE_WORK = 16 << 30
"""Bytes of work that all reads of a run may cost beyond the size of their objects: seconds."""
_REFUSED_SECONDS = 86_400.0
"""Seconds for which a refused pack is not fetched again; the upstream may repair the commit."""
_REFUSED_HINT = (
    "the upstream must repair it; it is fetched again after a day, with --adopt or another "
    "configuration of the module at once"
)
_HEAD = b"ref: "
_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
_FOLDERS = ("objects", "refs")
Judge = Callable[[str, bytes, ObjectReader], None]
"""A function that raises for an untrusted commit, given its id, its content and a reader."""


class StoreError(HuaiError):
    """The repository cannot be written."""


class DamagedRepositoryError(HuaiError):
    """Objects that should be in the repository are missing, or cannot be read."""

    exit_code = ExitCode.UNSOUND


class RefusedBeforeError(FormatError):
    """A commit that an earlier run refused, because of its pack or its content."""

    def __init__(self, reason: str, place: str) -> None:
        """`reason` is the message of the earlier run."""
        super().__init__(f"{reason}; refused before", place)
        self.hint = _REFUSED_HINT


class Repository:
    """The downstream's copy of a module's metadata, which fetches, judges and keeps commits."""

    def __init__(
        self,
        path: Path,
        *,
        timeout: int = 600,
        make: bool = True,
        accepted: tuple[int, str] = (0, ""),
    ) -> None:
        """Open the repository at `path`; if it is missing or damaged, `start_over` makes it.

        `timeout`: seconds without any data after which a fetch fails.  No other process may write
        to it.  Without `make` it is only read; raises `DamagedRepositoryError` if it cannot be.
        `accepted`: the highest serial and the identity that were accepted of the module; a commit
        of a list continues them.
        """
        self._path = path
        self._names = Refs(path)
        self.packs = Packs(_KEPT_BYTES, _SPARE_WORK)
        """The packs that the engine reads by itself."""
        self.packs.add(_packs_of(path))
        self._borrowed: list[Path] = []
        self._timeout = timeout
        self._deadline = NEVER
        self._arrived: list[Path] = []
        """Packs that were fetched in this run, and are not accepted yet."""
        self._former: str | None = None
        """The value of `_FETCHED` before them."""
        self._refused = KnownHeads(path, REFUSED, lasts=_REFUSED_SECONDS)
        self._basis = ""
        self._accepted = accepted
        self.doubted_paths: tuple[bytes, ...] = ()
        """Paths whose content was not there as a daemon had listed it."""
        self.remarks: list[str] = []
        """Remarks for the administrator about what was fetched."""
        self.warning = ""
        """Says what the upstream could not list, unless the last list had it too."""
        self._sources: dict[str, str] = {}
        """The URLs from which commits were fetched, by commit."""
        self.sparse = SparseCommits(path, self.packs, self._forget_hashes)
        if not _is_repository(path):
            if not make:
                raise self._damaged("this is not a repository", "metadata")
            self.start_over()

    def borrow(self, other: Path, commit: str) -> None:
        """Read objects of the repository at `other` as well; `keep` only `commit`, from there.

        The commits kept before are dropped.
        """
        self.packs.add(_packs_of(other))
        self._borrowed.append(other)
        self.sparse.read(other)
        self.keep([commit])

    def accept(self) -> None:
        """Keep what was fetched so far: `withdraw` and `refuse` only remove what comes later."""
        self._arrived.clear()

    def judge_by(self, facts: object) -> None:
        """Make `refuse` depend on `facts`: if they change, a refused commit is fetched again."""
        self._basis = blake2b(repr(facts).encode(), digest_size=8).hexdigest()

    def refuse(self, commit: str, error: UntrustedError | FormatError | TooLargeError) -> None:
        """Remove what was fetched (`withdraw`), and do not fetch `commit` again for a day.

        The next run raises the reason of `error` instead.  A commit that is not of this run is not
        remembered.
        """
        with suppress(OSError):
            self.sparse.distrust()
        if self._arrived and commit in self._sources:
            self._remember(f"{self._sources[commit]} {self._basis}", commit, error)
        self.withdraw()

    def _remember(self, address: str, commit: str, error: HuaiError) -> None:
        """Remember that `commit` at `address` was refused, with exit code and reason of `error`."""
        reason = printable(f"{error.exit_code:d} {error.message}").encode("ascii", "replace")
        self._refused.set(address, KnownHead(commit, reason.decode()[:1000]))

    def withdraw(self) -> None:
        """Remove packs and refs that were fetched since `accept`, lest refused packs pile up.

        Does nothing if nothing was; errors are ignored.
        """
        if not self._arrived:
            return
        with suppress(HuaiError, OSError, DamagedRefError):
            self._forget_hashes()
            self._names.delete(_PARTLY)
            if self._former is not None:
                self._names.set(_FETCHED, self._former)
            else:
                self._names.delete(_FETCHED)
            remove_packs(self._arrived)
        self.packs.forget()
        self._arrived.clear()

    def start_over(self) -> None:
        """Remove everything, and create an empty repository; raises `StoreError` if that fails."""
        self._arrived.clear()
        self.packs.forget()
        self.sparse.clear()
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
        """The hashes of the objects that are here; the file is removed before any of them is.

        Otherwise another object could get the id of a removed one, and pass for it.
        """
        return self._path / LISTING_HASHES

    def _forget_hashes(self) -> None:
        """Delete the hashes; called before any object is removed."""
        self.listing_hashes.unlink(missing_ok=True)

    def newest_commit(self, metadata: MetadataUrl) -> str:
        """Return the commit that the upstream's branch points to.

        If the upstream is listed and paths are doubted, list these again, and commit the result.
        Raises as `fetch` does.
        """
        if isinstance(metadata, ListedUrl) and self.doubted_paths:
            return self._fetch(Newest("", metadata), NEVER)
        return self.find_newest(metadata).commit

    def find_newest(self, metadata: MetadataUrl, deadline: Deadline = NEVER) -> Newest:
        """Ask the upstream for its newest commit; raises as `fetch` does."""
        heads = KnownHeads(self._path)
        return find_newest(metadata, timeout=self._timeout, deadline=deadline, heads=heads)

    def fetch(
        self,
        metadata: MetadataUrl,
        deadline: Deadline = NEVER,
        newest: Newest | None = None,
        judge: Judge = lambda *_: None,
    ) -> Commit:
        """Fetch the newest commit; the upstream sends only the objects that are missing here.

        `newest` is what the upstream has just reported; without it the upstream is asked first.
        `judge` checks the commit before anything else of it is read; a refused one is removed, and
        the error raised.  Also raises `UpstreamError`, `FormatError`, `TimeUpError`, and
        `StoreError` if the disk fails.  Removes what a killed run left.  Adds to `remarks`; to undo
        the rest, call `withdraw`.
        """
        drop_unfinished(self._path)
        if newest is None or (newest.static is None and newest.commit in self.sparse):
            newest = self.find_newest(metadata, deadline)
        commit = self._fetch(newest, deadline)
        urls = newest.static.content_urls if newest.static else ()
        return self._judge(commit, judge)._replace(relay_urls=urls)

    def _judge(self, commit: str, judge: Judge) -> Commit:
        """Return a commit if `judge` accepts it; otherwise remove it and raise the error.

        One that is untrusted or malformed is remembered as refused.
        """
        try:
            judge(commit, self.read(bytes.fromhex(commit), "commit"), self)
        except (UntrustedError, FormatError) as error:
            self.refuse(commit, error)
            raise
        except HuaiError:
            self.withdraw()
            raise
        return self.commit(commit)

    def _fetch(self, newest: Newest, deadline: Deadline) -> str:
        """Fetch a commit, or make one of a list, and set `_FETCHED` to it; returns its id.

        Its packs are noted until they are accepted.
        """
        commit = newest.commit
        try:
            former = self.fetched
            try:
                # The last list may be recorded, and its commit refused and removed.
                if isinstance(newest.url, ListedUrl) and not (commit and self.has(commit)):
                    commit, new = self._list(newest.url, newest.probed, deadline)
                else:
                    new = self._fetch_missing(newest, deadline)
            except HuaiError:
                self.packs.forget()  # new packs may have been removed again
                raise
            if not self._arrived:
                self._former = former
            self._arrived += new
            if not new:
                self.packs.forget()  # it may have replaced a torn one of its name
            if not self.has(commit):
                raise self._damaged("what was fetched cannot be read", commit)
            self._refused.forget(newest.url.address)
            self._sources[commit] = newest.url.address
            self._names.set(_FETCHED, commit)
            self._names.delete(_PARTLY)
        except OSError as error:
            raise self._unwritable(error) from error
        return commit

    def _list(
        self, url: ListedUrl, probed: str, deadline: Deadline
    ) -> tuple[str, tuple[Path, ...]]:
        """Commit a list of an upstream that does not run huai; return the commit and new packs.

        With `doubted_paths` a daemon lists only these.  Returns the former commit if nothing
        changed.  Adds to `remarks`, sets `warning`, and moves no ref.  `probed`: see `PollResult`.
        """
        from huai_client.metadata.source.fetch import SourceFetch  # few upstreams need it

        fetch = SourceFetch(url, self._path, self, timeout=self._timeout, deadline=deadline)
        commit, packs = fetch.commit(self._accepted, probed, self.doubted_paths)
        self.remarks += fetch.remarks
        self.warning = fetch.warning
        return commit, packs

    def forget_refused(self) -> None:
        """Forget refused commits and lists, so that all of it is fetched again."""
        for name in (REFUSED, RECORD_NAME):
            (self._path / name).unlink(missing_ok=True)

    def _fetch_missing(self, newest: Newest, deadline: Deadline) -> tuple[Path, ...]:
        """Fetch what is missing of a commit; return the new packs.

        Raises the error of a commit that was refused before.
        """
        url = newest.url
        for address in (url.address, f"{url.address} {self._basis}"):
            refused_head = self._refused.get(address)
            if refused_head is not None and refused_head.commit == newest.commit:
                raise _refused_before(refused_head.detail, str(url))

        def refused(error: FormatError) -> None:
            self._remember(url.address, newest.commit, error)

        commits = self._complete_commits(_FETCHED, _KEPT, _PARTLY)
        complete = {commit for commit in commits if commit not in self.sparse}
        if isinstance(url, ListedUrl):  # recorded with all its objects; a kill may precede the ref
            complete.add(newest.commit)
        older = (self._complete_commits(_HISTORY) | commits) - complete
        if newest.commit in self.sparse:
            older.discard(newest.commit)
        local = LocalRepository(
            self._path, self, complete, older, deadline, refused, tuple(self._borrowed)
        )
        if self.sparse.rules and not complete and is_http(url.url) and is_large(newest.static):
            packs = self._fetch_part(newest, local, self.sparse.rules, commits)
            if packs is not None:
                return packs
        new = self._fetcher(newest, local).complete()
        if newest.commit in self.sparse:
            head, bases = read_commit(newest.commit, self), local.heads(complete).values()
            if find_missing(head, bases, self, Filter([])).next():
                raise self._damaged("not all of it was fetched", newest.commit)
            self.sparse.add_whole(newest.commit)
        return new

    def _fetch_part(
        self, newest: Newest, local: LocalRepository, rules: "Rules", commits: set[str]
    ) -> tuple[Path, ...] | None:
        """Fetch what `rules` include; `commits` are here, at least in part.

        Returns None if the upstream does not send that.
        """
        from huai_client.metadata.sparse_fetch import SparseFetch  # few filters need it

        bases = self.sparse.by_rules(commits)
        if newest.commit in bases:
            return ()
        fetch = SparseFetch(newest, local, self, rules, bases, timeout=self._timeout)
        try:
            part = fetch.complete(self.sparse.hashed)
        except UpstreamDownError:
            raise
        except UpstreamError:
            return None
        self.sparse.add(newest.commit, part.absent, part.hashes)
        return part.packs

    def _fetcher(self, newest: Newest, local: LocalRepository) -> "GitFetch | StaticFetch":
        """Return the fetcher of a whole commit."""
        if newest.static is None:
            from huai_client.metadata.git_fetch import GitFetch  # few upstreams need it

            return GitFetch(newest, local, timeout=self._timeout)
        on_step = partial(self._names.set, _PARTLY)
        return StaticFetch(newest, newest.static, local, timeout=self._timeout, on_step=on_step)

    def _complete_commits(self, *prefixes: str) -> set[str]:
        """Return the commits that refs with these prefixes name; all their objects are here."""
        commits = {commit for name, commit in self._refs().items() if name.startswith(prefixes)}
        return {commit for commit in commits if self.has(commit)}

    def _refs(self) -> dict[str, str]:
        """Return all refs by name; raises `DamagedRepositoryError` if one cannot be read."""
        try:
            return self._names.all()
        except DamagedRefError as error:
            name, reason = error.args
            raise self._damaged(reason, name) from error
        except OSError as error:
            raise self._damaged(str(error), "refs") from error

    def commit(self, commit: str) -> Commit:
        """Return a commit that is here; raises `DamagedRepositoryError` or `FormatError`."""
        item = self.find(bytes.fromhex(commit))
        if item is None or item.kind != "commit":
            raise self._damaged("the commit is missing", commit)
        head = decode_commit(item.data)
        info = head.info()
        descriptor, tree = read_root(head.tree, self)
        most = info.totals.entries
        if commit in self.sparse:  # each entry takes more than a byte
            most = min(most, ENTRIES_FREE + self.packed)
        snapshot = Snapshot(self, tree, most)
        return Commit(commit, info, head.time, descriptor, snapshot)

    def has(self, commit: str) -> bool:
        """Return True if a commit is here."""
        item = self.find(bytes.fromhex(commit))
        return item is not None and item.kind == "commit"

    def keep(self, commits: Iterable[str]) -> None:
        """Make refs for exactly these commits, which the next fetch builds on.

        Deletes the refs of others, and what a killed run left.  Raises `StoreError`, or
        `DamagedRepositoryError` for an unreadable ref.
        """
        names = set(commits)
        drop_unfinished(self._path)
        try:
            refs = {name for name in self._refs() if name.startswith(_KEPT)}
            for name in sorted({_KEPT + commit for commit in names} - refs):
                self._names.set(name, name.removeprefix(_KEPT))
            for name in sorted(refs):
                if name.removeprefix(_KEPT) not in names:
                    self._names.delete(name)
        except OSError as error:
            raise self._unwritable(error) from error

    def keep_history(self, commit: str | None, most: int) -> None:
        """Add `commit`, if given, here and not the last one, to the history of applied commits.

        Only the newest `most` are kept.  Raises as `keep` does.
        """
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
        """Return the kept commits of the history that are still here, newest first.

        Raises `DamagedRepositoryError` for a malformed ref.
        """
        refs = self._refs()
        commits = [refs[name] for name in self._history_refs()]
        return [commit for commit in reversed(commits) if self.has(commit)]

    def _history_refs(self) -> list[str]:
        return sorted(name for name in self._refs() if name.startswith(_HISTORY))

    @property
    def fetched(self) -> str | None:
        """The newest commit that was fetched, applied or not; None before the first fetch.

        Raises as `history`.
        """
        return self._refs().get(_FETCHED)

    @property
    def packed(self) -> int:
        """The bytes of all packs, including borrowed ones and those not accepted yet."""
        try:
            return sum(chain.from_iterable(map(pack_sizes, (self._path, *self._borrowed))))
        except OSError as error:
            raise self._damaged(str(error), "objects/pack") from error

    def read(self, oid: bytes, kind: Kind) -> bytes:
        """Return the content of an object (`ObjectReader`).

        Raises `DamagedRepositoryError` if it cannot be read, `FormatError` if it is of another
        kind.
        """
        item = self.find(oid)
        if item is None:
            raise self._damaged("the object is missing", oid.hex())
        if item.kind != kind:
            raise FormatError(f"a {kind} was expected", oid.hex())
        return item.data

    @contextmanager
    def until(self, deadline: Deadline) -> Iterator[None]:
        """Within the block, reading an object raises `TimeUpError` after `deadline`."""
        self._deadline = deadline
        try:
            yield
        finally:
            self._deadline = NEVER

    def find(self, oid: bytes) -> GitObject | None:
        """Return an object of any kind (`Objects`); None if it is not here.

        Raises `DamagedRepositoryError` for one that cannot be read or is damaged, `TimeUpError`
        after the deadline of `until`.
        """
        if self._deadline is not NEVER:
            self._deadline.check("the metadata are complete, and nothing was changed")
        try:
            item = self.packs.find(oid)
        except (FormatError, OSError) as error:
            raise self._damaged(str(error), oid.hex()) from error
        return GitObject(*item) if item else None

    def __contains__(self, oid: bytes) -> bool:
        """Return True if an object is here (`Objects`)."""
        try:
            return oid in self.packs
        except (FormatError, OSError) as error:
            raise self._damaged(str(error), oid.hex()) from error

    def repack(self, limit: int = _PACKS_MAX) -> None:
        """Make one pack of what is kept, if `needs_repack` says so for `limit` packs.

        Everything else is dropped: what was fetched and is not kept.  May be interrupted anywhere.
        After a failure the old packs stay, and the next run tries again.
        """
        if not needs_repack(self._path, limit):
            return
        with suppress(HuaiError, OSError):
            self._forget_hashes()
            packs = Packs(_KEPT_BYTES)
            packs.add(_packs_of(self._path))
            packs.set_absent([*self.sparse.absent])
            exchange_packs(self._path, partial(self._write_pack, packs))
            self.sparse.keep(self._complete_commits(_KEPT, _HISTORY), packs.left_out)
        self.packs.forget()

    def _write_pack(self, packs: Packs, folder: Path) -> None:
        """Write a pack of kept and earlier commits, from `packs`; list them as shallow.

        Drops the other refs.
        """
        for name in (_FETCHED, _PARTLY):
            self._names.delete(name)
        # Oldest first: a delta against an older object stays one.
        commits = [*reversed(self.history())]
        commits += sorted(self._complete_commits(_KEPT) - {*commits})
        texts = [self.read(bytes.fromhex(commit), "commit") for commit in commits]
        heads = [(text, decode_commit(text).tree) for text in texts]
        with IncomingPack(folder) as pack:
            packs.pack(heads, pack.write)
            pack.install(self, WorkLimit())
        write_shallow(self._path, commits)

    def _damaged(self, reason: str, name: str) -> DamagedRepositoryError:
        return DamagedRepositoryError(
            f"{self._path}: {name}: {reason}",
            hint="huai-client sync NAME --adopt fetches the metadata again",
        )

    def _unwritable(self, error: OSError) -> StoreError:
        hint = DISK_HINTS.get(error.errno or 0, "run as the user that the state belongs to")
        return StoreError(f"{self._path}: {error}", hint=hint)


def _is_repository(path: Path) -> bool:
    """Return True if the files that git requires are there; else the repository is made again."""
    try:
        sound = (path / "HEAD").read_bytes().startswith(_HEAD)
        sound = sound and (path / "config").read_bytes().startswith(_CONFIG[:6])
    except OSError:
        return False
    return sound and all((path / folder).is_dir() for folder in _FOLDERS)


def _packs_of(repository: Path) -> bytes:
    return os.fsencode(repository / "objects" / "pack")


def _refused_before(detail: str, place: str) -> FormatError | UntrustedError:
    """Return the error for a commit that an earlier run refused; `detail`: exit code and reason."""
    code, _, reason = detail.partition(" ")
    if code == f"{UntrustedError.exit_code:d}":
        return UntrustedError(f"{place}: {reason}; refused before", hint=_REFUSED_HINT)
    return RefusedBeforeError(reason, place)
