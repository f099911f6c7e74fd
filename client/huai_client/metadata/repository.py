"""The metadata repository of one module on the downstream: the only place that knows pygit2.

pygit2 has the refs, the URLs that are not HTTP, and the packing anew; objects are read natively.
Fetches the newest commit without history, reads objects, and keeps what refs name: the
applied commit and those that an interrupted run was going for.  All of it can be fetched anew, so a
damaged repository is thrown away, never repaired.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from huai_client.deadline import NEVER, Deadline
from huai_client.metadata.commit import Commit
from huai_client.metadata.git import GitObject, LocalRepository, fetch_commit, write_shallow
from huai_client.metadata.http import (
    MetadataUrl,
    NotServedError,
    UpstreamError,
    find_newest,
    is_http,
    newest_commit,
)
from huai_client.metadata.packs import drop_unfinished, exchange_packs
from huai_native._native import Packs
from huai_schema.codec.commits import decode_commit
from huai_schema.codec.descriptor import read_root
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.git.objects import BRANCH, Kind
from huai_schema.layout.snapshot import Snapshot


class LibraryError(HuaiError):
    """Libgit2 does not start: it wants certificates, even where no connection is made."""

    exit_code = ExitCode.REQUIREMENT


try:
    import pygit2
    from pygit2.enums import Option
except ImportError:
    raise
except Exception as failure:  # its class stands in what cannot be imported
    raise LibraryError(
        f"libgit2 does not start: {failure}",
        hint="install the certificates of the system (ca-certificates), or correct SSL_CERT_FILE",
    ) from failure

_FETCHED = "refs/huai/fetched"
_BEFORE = "refs/huai/before"
"""What `_FETCHED` was, so that it is still offered while the next fetch runs."""
_KEPT = "refs/huai/kept/"
_HISTORY = "refs/huai/history/"
"""Commits that were applied before, numbered: for people, not for the next fetch."""
_PACKS_MAX = 40
_CONNECT_SECONDS = 60
_COMMIT = re.compile("[0-9a-f]{40}")
_FAILURES = (pygit2.GitError, KeyError, ValueError, OSError)
"""What pygit2 raises, depending on libgit2's code."""


class StoreError(HuaiError):
    """The repository cannot be written."""

    exit_code = ExitCode.FILE_IO


class DamagedRepositoryError(HuaiError):
    """Objects that should be in the repository are not, or cannot be read."""

    exit_code = ExitCode.UNSOUND


class Repository:
    """An `ObjectReader` over the downstream's copy of the metadata."""

    def __init__(self, path: Path, *, timeout: int = 600, make: bool = True) -> None:
        """Open the repository at `path`, made anew if it is missing or cannot be opened.

        `timeout`: seconds without any data after which a fetch fails.  Nobody else may write
        to it.  Without `make` it is only to be read: `DamagedRepositoryError` if it cannot be.
        """
        # The state root protects these files, whoever owns them.  Ids are verified when objects
        # arrive; what decays on the disk later fails zlib's own checksum.
        pygit2.option(Option.SET_OWNER_VALIDATION, False)
        pygit2.option(Option.ENABLE_STRICT_HASH_VERIFICATION, False)
        pygit2.option(Option.ENABLE_FSYNC_GITDIR, True)
        pygit2.option(Option.SET_SERVER_CONNECT_TIMEOUT, _CONNECT_SECONDS * 1000)
        pygit2.option(Option.SET_SERVER_TIMEOUT, timeout * 1000)
        self._path = path
        self.packs = Packs()
        """What the engine reads by itself."""
        self.packs.add(_packs_of(path))
        self._timeout = timeout
        self._deadline = NEVER
        self._arrived: list[Path] = []
        """Packs that came in this run, and are not accepted yet."""
        self._former: str | None = None
        """What `_FETCHED` was before them."""
        try:
            self._git = pygit2.Repository(str(path))
        except pygit2.GitError as error:
            if not make:
                raise self._damaged(str(error), "metadata") from error
            self._git = self._make()

    def borrow(self, other: Path, commit: str) -> None:
        """Read what the repository at `other` holds as well, `commit` among it; offer that one."""
        try:
            self._git.odb.add_disk_alternate(str(other / "objects"))  # for refs
        except _FAILURES as error:
            raise self._damaged(str(error), str(other)) from error
        self.packs.add(_packs_of(other))
        self.keep([commit])

    def start_over(self) -> None:
        """Throw everything away."""
        # Else libgit2 would take the next pack of an equal name for the one it has mapped.
        self._git.free()
        self._git = self._make()

    def accept(self) -> None:
        """Keep what was fetched so far, whatever comes later in this run."""
        self._arrived.clear()

    def withdraw(self) -> None:
        """Forget what was fetched since `accept`: it is refused, and must not pile up here."""
        with suppress(*_FAILURES):
            if not self._arrived:
                return
            if self._former is not None:
                self._git.references.create(_FETCHED, self._former, force=True)
            elif _FETCHED in self._git.references:
                self._git.references.delete(_FETCHED)
            for pack in self._arrived:
                pack.with_suffix(".idx").unlink(missing_ok=True)  # without it, it is no pack
                pack.unlink(missing_ok=True)
        self.packs.forget()
        self._arrived.clear()

    def _make(self) -> pygit2.Repository:
        self._arrived.clear()
        self.packs.forget()
        try:
            if self._path.exists():
                shutil.rmtree(self._path)
            return pygit2.init_repository(str(self._path), bare=True, initial_head="main")
        except _FAILURES as error:
            raise self._unwritable(error) from error

    def newest_commit(self, metadata: MetadataUrl) -> str:
        """The commit that the upstream's branch points to, by any transport git knows."""
        if is_http(metadata.url):
            return newest_commit(metadata, timeout=self._timeout)
        try:
            remote = self._git.remotes.create_anonymous(metadata.url)
            heads = {head.name: str(head.oid) for head in remote.list_heads()}
        except _FAILURES as error:
            raise UpstreamError(f"{metadata}: {error}", hint="look at the URL") from error
        if BRANCH not in heads:
            raise _no_commits_yet(metadata)
        return heads[BRANCH]

    def fetch(self, metadata: MetadataUrl, deadline: Deadline = NEVER) -> Commit:
        """Bring the newest commit here; only what this side does not have is sent."""
        drop_unfinished(self._path)
        if is_http(metadata.url):
            return self._fetch_over_http(metadata, deadline)
        try:
            self._set_aside()
            remote = self._git.remotes.create_anonymous(metadata.url)
            remote.fetch([f"+{BRANCH}:{_FETCHED}"], callbacks=_Interruptible())
        except _FAILURES as error:
            self.newest_commit(metadata)  # has the better words, if it fails too
            raise UpstreamError(
                f"{metadata}: fetching the metadata failed: {error}", hint="run again"
            ) from error
        if self.fetched is None:
            raise _no_commits_yet(metadata)
        return self.commit(self.fetched)

    def _fetch_over_http(self, metadata: MetadataUrl, deadline: Deadline) -> Commit:
        newest = find_newest(metadata, timeout=self._timeout, deadline=deadline)
        try:
            complete = self._named(_FETCHED, _BEFORE, _KEPT)
            here = LocalRepository(
                self._path, self, complete, self._named(_HISTORY) - complete, deadline
            )
            former = self.fetched
            pack = fetch_commit(newest, here, timeout=self._timeout)
            if not self._arrived:
                self._former = former
            self._arrived += [pack] if pack else []
            self._check_visible(newest.commit)
            self._git.references.create(_FETCHED, newest.commit, force=True)
        except (pygit2.GitError, OSError) as error:
            raise self._unwritable(error) from error
        return self.commit(newest.commit)

    def _check_visible(self, commit: str) -> None:
        """A new pack may take the place of a torn one of its name, which libgit2 has open still."""
        try:
            self._git.odb.read_header(pygit2.Oid(hex=commit))
        except _FAILURES as error:
            raise self._damaged("what was fetched cannot be read", commit) from error

    def _named(self, *prefixes: str) -> set[str]:
        """The commits that refs name: everything in them is here."""
        commits = {commit for name, commit in self._refs().items() if name.startswith(prefixes)}
        return {commit for commit in commits if self.has(commit)}

    def _refs(self) -> dict[str, str]:
        """All refs and the commits they name; `DamagedRepositoryError` if one names none."""
        try:
            named = {name: str(self._git.references[name].target) for name in self._names()}
        except _FAILURES as error:
            raise self._damaged(str(error), "refs") from error
        for name, commit in named.items():
            if not _COMMIT.fullmatch(commit):
                raise self._damaged("names no commit", name)
        return named

    def _names(self) -> list[str]:
        """Of the refs; a loose one that holds nothing is one too, which libgit2 passes over."""
        found = set(self._git.references)
        for path in (self._path / "refs").rglob("*"):
            if path.suffix != ".lock" and path.is_file():
                found.add(str(path.relative_to(self._path)))
        return sorted(found)

    def commit(self, commit: str) -> Commit:
        """A commit that is here; `DamagedRepositoryError` if it is not."""
        found = self.find(bytes.fromhex(commit))
        if found is None or found.kind != "commit":
            raise self._damaged("there is no such commit", commit)
        # Never by libgit2: what that refuses would count as damage on this side.
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
            for commit in wanted:
                self._git.references.create(_KEPT + commit, commit, force=True)
            for name in self._refs():
                if name.startswith(_KEPT) and name.removeprefix(_KEPT) not in wanted:
                    self._git.references.delete(name)
        except _FAILURES as error:
            raise self._unwritable(error) from error

    def keep_history(self, commit: str | None, most: int) -> None:
        """Let a commit that was applied stay for a while, beside the last `most` of that kind."""
        try:
            refs = self._history_refs()
            newest = self._refs()[refs[-1]] if refs else None
            if commit is not None and commit != newest and most and self.has(commit):
                number = int(refs[-1].removeprefix(_HISTORY)) + 1 if refs else 1
                refs.append(f"{_HISTORY}{number:08d}")
                self._git.references.create(refs[-1], commit, force=True)
            for name in refs[: max(0, len(refs) - most)]:
                self._git.references.delete(name)
        except _FAILURES as error:
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

    def __contains__(self, oid: bytes) -> bool:
        """Whether an object is here (`Objects`)."""
        try:
            return oid in self.packs
        except (FormatError, OSError) as error:
            raise self._damaged(str(error), oid.hex()) from error

    def repack(self, limit: int = _PACKS_MAX) -> None:
        """If there are more than `limit` packs, make one of what is kept and drop all others.

        May be interrupted anywhere.  A failure changes nothing; the next run tries again.
        """
        with suppress(*_FAILURES):
            exchange_packs(self._path, limit, self._write_pack)
        self.packs.forget()

    def _write_pack(self, folder: Path) -> None:
        """Write one pack of all that kept and earlier commits hold."""
        for name in (_FETCHED, _BEFORE):
            if name in self._git.references:
                self._git.references.delete(name)
        commits = sorted(self._named(_KEPT) | self._named(_HISTORY))
        builder = pygit2.PackBuilder(self._git)
        for commit in commits:
            builder.add_recur(pygit2.Oid(hex=commit))
        builder.write(str(folder))
        write_shallow(self._path, commits)

    def _set_aside(self) -> None:
        """An upstream that lost its branch must not leave us with what it had before."""
        fetched = self._git.references.get(_FETCHED)
        if fetched is not None:
            self._git.references.create(_BEFORE, fetched.target, force=True)
            fetched.delete()

    def _damaged(self, reason: str, name: str) -> DamagedRepositoryError:
        return DamagedRepositoryError(
            f"{self._path}: {name}: {reason}",
            hint="huai-client sync NAME --adopt fetches the metadata anew",
        )

    def _unwritable(self, error: Exception) -> StoreError:
        return StoreError(f"{self._path}: {error}", hint="look at the disk and its permissions")


def _packs_of(repository: Path) -> bytes:
    return os.fsencode(repository / "objects" / "pack")


def _no_commits_yet(metadata: MetadataUrl) -> NotServedError:
    message = f"{metadata}: nothing is committed there yet"
    return NotServedError(message, hint="run huai-server commit on the upstream")


class _Interruptible(pygit2.RemoteCallbacks):
    """Lets Python see a signal while libgit2 receives."""

    def transfer_progress(self, stats: object) -> None:
        """Called with every piece that came; an exception raised by a signal ends the fetch."""
