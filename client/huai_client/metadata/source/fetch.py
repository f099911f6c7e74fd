"""Makes the commit of an upstream that does not run huai, from its lists.

Order of writes: the objects, as a pack; the commit, as another one; the published list before is
removed; the record; the new published list.  The caller moves the ref.  A run that is cut leaves
unused packs, and lists again: a published list is only there with the record of its commit.
"""

import os
import shlex
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from huai_client.metadata.commit import Commit
from huai_client.metadata.http import ListedUrl, UpstreamDownError, UpstreamError
from huai_client.metadata.packs import list_packs
from huai_client.metadata.source.daemon import ListedDaemon, ListOutcome
from huai_client.metadata.source.probe import (
    Listing,
    describe,
    find_probes,
    find_published,
    lists_beside,
    probe,
)
from huai_client.metadata.source.recent import (
    RecentChanges,
    RecentMark,
    is_recent,
    read_events,
)
from huai_client.metadata.source.record import LIST_NAME, SourceRecord, load_record, save_record
from huai_client.metadata.source.text import TextSource, describe_source
from huai_client.run.options import NEVER, Deadline
from huai_native._native import (
    EntryList,
    Packs,
    PackWriter,
    check_hardlinks,
    compare_file_lists,
    count_changes,
)
from huai_program.packs import opened_writer
from huai_program.programs import run_captured
from huai_program.urls import without_login
from huai_schema.codec.commits import CommitInfo, Counts, Totals, encode_commit
from huai_schema.codec.descriptor import Descriptor, write_root
from huai_schema.errors import FormatError

if TYPE_CHECKING:
    from huai_schema.git.objects import Kind

_PROBE_SECONDS = 86_400
"""Age of a list from which a probe that was found by its name is no longer relied on."""
_FRESH_SECONDS = 60
"""Age up to which a list is not made again for a run that files were missing from."""
_LONGEST = 86_400.0
"""The most seconds that fetching a list may take."""
_WHOLE_SECONDS = 7 * 86_400
"""Age of the last list of the whole tree from which on events are not relied on."""


class ModuleObjects(Protocol):
    """The module's repository, as far as a commit is made in it."""

    packs: Packs

    @property
    def fetched(self) -> str | None:
        """The commit that was fetched or listed last, whatever its upstream; None without one."""

    def commit(self, commit: str) -> Commit:
        """Return a commit that is here."""

    def has(self, commit: str) -> bool:
        """Return True if a commit is here."""

    def read(self, oid: bytes, kind: "Kind") -> bytes:
        """Return the content of the object `oid`, which has to be of `kind`."""


class _Tree(NamedTuple):
    """A git tree that was written, not committed."""

    id: bytes
    totals: Totals
    skipped: int = 0


class PollResult(NamedTuple):
    """The result of one small list at most, compared with the record of the last list."""

    commit: str = ""
    """The commit of the last list; empty if the upstream may have something newer."""
    probed: str = ""
    """The state of the record's probes; empty if they were not listed."""


def poll_listed(
    repository: Path | None, url: ListedUrl, timeout: float, deadline: Deadline, *, is_poll: bool
) -> PollResult:
    """Find out if the upstream has anything newer than the last list.

    `repository` is the folder of the module's metadata, or None without one; `timeout` in seconds.
    Without probes relies on a list that is younger than `ListSettings.every` if `is_poll`, else
    than a minute.  Raises `UpstreamError` if it cannot be asked.
    """
    record = load_record(repository, source_name(url)) if repository else None
    if record is None:
        return PollResult()
    settings, age = url.settings, time.time() - record.listed
    if url.settings.source and record.state:
        source = TextSource(url, timeout=timeout, deadline=deadline)
        return PollResult("" if source.has_changed(record.state) else record.commit)
    if not record.probes:
        valid = settings.every if is_poll else _FRESH_SECONDS
        return PollResult(record.commit if 0 <= age < valid else "")
    if not settings.probe and not record.published and age > _PROBE_SECONDS:
        return PollResult()
    probed = probe(ListedDaemon(url, timeout=timeout, deadline=deadline), record.probes)
    return PollResult(record.commit if probed == record.state else "", probed)


def describe_listing(url: ListedUrl, timeout: float) -> Listing:
    """Return how `url` is listed; asks a daemon, and may raise `UpstreamError`."""
    if url.settings.source:
        listing = Listing(describe_source(url.settings))
    else:
        daemon = ListedDaemon(url, timeout=timeout, deadline=NEVER)
        listing = describe(daemon, url.settings)
    return listing._replace(text=f"{url} does not run huai: {listing.text}")


def source_name(url: ListedUrl) -> str:
    """Return the name under which a list is recorded: the address, and the source if any."""
    return " ".join((url.address, *map(without_login, url.settings.source)))


class SourceFetch:
    """Lists an upstream once, and commits the list in the module's repository."""

    def __init__(
        self,
        url: ListedUrl,
        path: Path,
        objects: ModuleObjects,
        *,
        timeout: float,
        deadline: Deadline,
    ) -> None:
        """`path` is that of the repository `objects`; `timeout` is in seconds."""
        self._url = url
        self._settings = url.settings
        self._path = path
        self._objects = objects
        self._timeout, self._deadline = timeout, deadline
        self._daemon = ListedDaemon(url, timeout=timeout, deadline=deadline)
        self._text: TextSource | None = None
        """The source that lists instead of the daemon."""
        if url.settings.source:
            self._text = TextSource(url, timeout=timeout, deadline=deadline)
        self._has_links = True
        """False if no file of the last list has several names."""
        self._is_behind = False
        """True if the upstream does not have all that its events name."""
        self.remarks: list[str] = []
        """Remarks for the administrator about the list."""
        self._problem = ""
        """Says what the upstream could not list; empty if it could list all."""
        self.warning = ""
        """The same, unless the last list had it too."""

    def commit(
        self, accepted: tuple[int, str], probed: str = "", doubted_paths: Sequence[bytes] = ()
    ) -> tuple[str, tuple[Path, ...]]:
        """List, and return the commit and the new packs; the former commit if nothing changed.

        A new one has a higher serial than that in `accepted`, and the identity there, unless that
        is empty.  `probed`: see `PollResult`.  With `doubted_paths` a daemon lists only these
        again, and missing ones stay: they are removed by the next list of all.  Replaces the record
        of the list, sets `warning`, and adds to `remarks`; moves no ref.  Raises `UpstreamError`
        for a failure to list, `FormatError` for a malformed list.
        """
        record = load_record(self._path, source_name(self._url))
        if record is not None and not self._objects.has(record.commit):
            record = None
        if record is not None:
            self._has_links = record.has_links
        packs = set(list_packs(self._path))
        if record and doubted_paths:
            past = self._objects.commit(record.commit)
            tree = None if self._text else self._list_names(doubted_paths, [], past)
            commit = self._commit(tree, past, accepted, int(time.time())) if tree else past.id
            new = msgspec.structs.replace(record, commit=commit, has_links=self._has_links)
            # The same commit: these are gone, which only the next list of all proves.
            save_record(self._path, record.outdated if commit == record.commit else new)
        else:
            commit = self._list_all(record, accepted, probed)
        return commit, tuple(sorted(set(list_packs(self._path)) - packs))

    def _list_all(self, record: SourceRecord | None, accepted: tuple[int, str], probed: str) -> str:
        """Commit the upstream's present state, and save record and list; returns the commit's id.

        What a published list does not name is unchanged.  `accepted`, `probed`: see `commit`.
        """
        started = time.time()
        if record:  # a retry, after this list failed, must not take the last one for a fresh one
            save_record(self._path, record.outdated)
        published = record.published if record else self._find_published()
        probes = self._find_probes(record, published)
        state = probed if record and record.probes == probes else ""
        if probes and not state:
            state = probe(self._daemon, probes)
        past = self._objects.commit(record.commit) if record else None
        all_listed, mark, tree = started, None, None
        has_events = is_recent(published)
        has_list = published and not has_events
        with self._fetched(published) if has_list else nullcontext() as fetched:
            if has_events:
                mark, tree = self._after_events(record, past, published)
            elif record and past and fetched and not _is_worth_a_list(record):
                tree = self._amended(past, fetched, published)
            if record and tree:  # the rest is as the last whole list says
                all_listed = record.all_listed
                self._problem = self._problem or record.problem
            tree = tree or self._list(past or self._former())
            commit = self._commit(tree, past, accepted, int(started))
            (self._path / LIST_NAME).unlink(missing_ok=True)
            name = source_name(self._url)
            state = self._text.validator if self._text else state
            if record and record.problem == self._problem:
                self.warning = ""
            links, problem = self._has_links, self._problem
            new = SourceRecord(
                name, commit, started, probes, state, published, links, all_listed, mark, problem
            )
            save_record(self._path, new)
            if fetched:
                fetched.replace(self._path / LIST_NAME)
        return commit

    # Lists

    def _former(self) -> Commit | None:
        """Return the commit from which a list without a record removes nothing if it is partial."""
        commit = self._objects.fetched
        return self._objects.commit(commit) if commit and self._objects.has(commit) else None

    def _find_published(self) -> str:
        """Return the name of the list that the upstream publishes, or empty; may ask the daemon."""
        has_none = self._text or self._settings.probe
        return "" if has_none else find_published(self._daemon)

    def _find_probes(self, record: SourceRecord | None, published: str) -> tuple[str, ...]:
        """Return the files that show if the tree changed; may ask the daemon.

        Empty for a list that is printed.
        """
        if self._text:
            return ()
        if self._settings.probe:
            return (self._settings.probe,)
        if published:
            return (published,)
        return record.probes if record and record.probes else find_probes(self._daemon)

    @contextmanager
    def _fetched(self, name: str) -> Iterator[Path]:
        """Fetch a published list, and yield its path; it is deleted at the end of the block.

        Raises `UpstreamDownError` if rsync fails.
        """
        path = self._path / f"{LIST_NAME}.new"
        try:
            with suppress(OSError):  # rsync transfers only where it differs, into a new file
                path.hardlink_to(self._path / LIST_NAME)
            self._fetch_file(name, path)
            yield path
        finally:
            path.unlink(missing_ok=True)

    def _fetch_file(self, name: str, to: Path) -> None:
        """Fetch the file `name`, relative to the upstream's URL, to the path `to`, by rsync.

        Raises `UpstreamDownError` if rsync fails, `TimeUpError` at the deadline.
        """
        command = ["rsync", "--times", "--ignore-times", "--no-motd"]
        command.append(f"--timeout={max(1, round(self._timeout))}")
        if self._settings.shell:
            command.append(f"--rsh={shlex.join(self._settings.shell)}")
        source = f"{self._url.url.rstrip('/')}/{name}"
        try:
            done = run_captured(
                [*command, "--", source, os.fsdecode(to)], seconds=self._deadline.bound(_LONGEST)
            )
        except TimeoutError:
            self._deadline.check("no list was fetched")
            raise UpstreamDownError(f"{source}: not here after a day") from None
        if done.code:
            text = done.errors.decode("utf-8", "replace").strip().splitlines()
            raise UpstreamDownError(f"{source}: {text[0] if text else 'not fetched'}")

    def _list(self, past: Commit | None) -> _Tree:
        """List the whole tree, and write it; a partial list removes nothing from `past`, if given.

        Raises `UpstreamError` or `FormatError` without a list.
        """
        with tempfile.TemporaryFile(dir=self._path) as store, self._writing() as writer:
            entries = EntryList(store, self._settings.most)
            outcome = (self._text or self._daemon).list_tree(entries)
            self._remark(outcome)
            if past is None and self._text and self._text.has_other_digests:
                self.remarks.append(
                    f"{self._url}: the digests of the list are not of BLAKE3 and prove no content: "
                    "files are compared by size and time"
                )
            if outcome.partial and past is not None:
                try:
                    return self._amend(entries, past, [], writer)
                except FormatError as error:  # for example a hardlink into what is not listed
                    raise UpstreamError(f"{self._problem}; not applied: {error.reason}") from error
            skipped, self._has_links = entries.skipped, entries.has_links
            try:
                tree, totals = entries.write_tree(writer)
            except FormatError as error:
                if outcome.partial and outcome.messages:  # the top itself may be missing
                    raise UpstreamError(f"{self._url}: {outcome.messages[-1]}") from error
                raise
            self._finish(writer)
            return _Tree(tree, Totals(*totals), skipped)

    def _amended(self, past: Commit, published: Path, name: str) -> _Tree | None:
        """List what differs between the published list and the one before it.

        Returns None if that is not enough: the whole tree has to be listed.
        """
        former = self._path / LIST_NAME
        try:
            changed, removed_paths, has_unreadable = _compare(former, published)
        except FileNotFoundError:
            return None
        except FormatError as error:
            if not _is_complete(former):
                return None
            raise error.within(f"{self._url}/{name}") from error
        if has_unreadable:
            return None
        return self._list_names([*lists_beside(name), *changed], removed_paths, past)

    def _after_events(
        self, record: SourceRecord | None, past: Commit | None, name: str
    ) -> tuple[RecentMark, _Tree | None]:
        """List what has events since the last list; returns the mark of what is known then.

        Returns no tree if all of it has to be listed.
        """
        is_fresh = record and past and time.time() - record.all_listed < _WHOLE_SECONDS
        since = record.mark if record and is_fresh else None
        try:
            mark, changes = read_events(name, since, self._fetched)
        except FormatError as error:
            raise error.within(str(self._url)) from error
        if past is None or since is None or changes is None:
            return mark, None
        names = [*changes.lists, *changes.new]
        tree = self._list_names(names, [*changes.removed], past, changes)
        # What the upstream does not have yet, a mirror for example, has no other event.
        return since if self._is_behind else mark, tree

    def _list_names(
        self,
        paths: Iterable[bytes],
        removed_paths: list[bytes],
        past: Commit,
        changes: RecentChanges | None = None,
    ) -> _Tree | None:
        """Amend `past` with the entries at `paths`, and without those at `removed_paths`.

        Returns None if that is not enough: the whole tree has to be listed.
        """
        above = {path.rpartition(b"/")[0] for path in removed_paths}
        names = {*paths, *above} - {b""}
        with tempfile.TemporaryFile(dir=self._path) as store, self._writing() as writer:
            entries = EntryList(store, self._settings.most)
            outcome = self._daemon.list_names(sorted(names), entries)
            if changes is not None:
                if outcome.partial:  # a directory may be there although it is not listed
                    return None
                listed = {path for path, *_ in entries.entries()}
                self._is_behind = not listed.issuperset(changes.new)
            self._remark(outcome)
            try:
                return self._amend(entries, past, removed_paths, writer)
            except FormatError:  # for example a hardlink of which only one name changed
                return None

    def _amend(
        self, entries: EntryList, past: Commit, removed_paths: list[bytes], writer: PackWriter
    ) -> _Tree:
        """Write the tree of `past` with `entries` and without `removed_paths`."""
        self._has_links |= entries.has_links
        tree, added, removed = entries.amend(past.snapshot.arguments, removed_paths, writer)
        self._finish(writer)
        before = past.info.totals
        totals = Totals(*(a + b - c for a, b, c in zip(before, added, removed, strict=True)))
        if self._has_links:
            self._has_links = check_hardlinks(self._objects, tree, totals.entries)
        return _Tree(tree, totals, past.info.skipped + entries.skipped)

    def _finish(self, writer: PackWriter) -> None:
        writer.finish()
        self._objects.packs.forget()

    def _remark(self, outcome: ListOutcome) -> None:
        """Set `warning` if the list is partial."""
        if outcome.partial:
            last = f": {outcome.messages[-1]}" if outcome.messages else ""
            self._problem = self.warning = (
                f"{self._url}: the upstream could not read all of its tree, and nothing that is "
                f"missing from its list is deleted{last}"
            )

    # The commit

    def _commit(self, tree: _Tree, past: Commit | None, accepted: tuple[int, str], now: int) -> str:
        """Write a commit of `tree`, of the time `now`, and return its id; that of `past` if equal.

        `accepted`: see `commit`.
        """
        serial, identity = accepted
        counts = Counts(added=tree.totals.entries, new_bytes=tree.totals.bytes)
        if past is not None:
            if past.snapshot.tree == tree.id:
                return past.id
            new = (self._objects, tree.id, tree.totals.entries)
            counts = Counts(*count_changes(past.snapshot.arguments, new))
            serial, identity = max(serial, past.info.serial), past.descriptor.identity
        name = self._settings.module
        descriptor = Descriptor(name, (self._url.address,), (), identity or os.urandom(16).hex())
        info = CommitInfo(name, serial + 1, tree.totals, counts, tree.skipped)
        with self._writing() as writer:
            top = write_root(descriptor, tree.id, writer)
            commit = writer.write("commit", encode_commit(top, None, now, info.encode()))
            self._finish(writer)
        return commit.hex()

    def _writing(self) -> AbstractContextManager[PackWriter]:
        return opened_writer(self._path / "objects" / "pack")


def _is_worth_a_list(record: SourceRecord) -> bool:
    """Return True if the last whole list was partial, a day ago: more of it may be readable now."""
    return bool(record.problem) and time.time() - record.all_listed > _PROBE_SECONDS


def _is_complete(file_list: Path) -> bool:
    """Return True for a published list that is whole."""
    try:
        _compare(file_list, file_list)
    except FormatError:
        return False
    return True


def _compare(old: Path, new: Path) -> tuple[list[bytes], list[bytes], bool]:
    """Return the new and changed paths, the removed ones, and True if other paths changed too.

    Raises `FormatError` if one of the files is malformed.
    """
    with old.open("rb") as old_list, new.open("rb") as new_list:
        return compare_file_lists(old_list, new_list)
