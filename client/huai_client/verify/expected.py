"""The expected content of a tree, read without the module's lock.

A sync may run while a tree is verified.  It writes the state file before it changes the tree, so a
result is valid only if the state file is still the same afterwards.
Rule: call `holds` after reading and before drawing conclusions.
"""

import os
import time
from collections.abc import Iterable
from functools import cached_property
from typing import TypeAlias

from huai_client.config.mirror import Mirror
from huai_client.diff.candidate import Difference, DifferenceKind, FoundDifference
from huai_client.diff.symlinks import is_unsafe
from huai_client.metadata.repository import Repository
from huai_client.plan.build import applied_selection
from huai_client.plan.order import Matcher
from huai_client.plan.profiles import list_volatile_rules
from huai_client.plan.protect import Protection
from huai_client.state import delayed_record
from huai_client.state import state as states
from huai_client.state.paths import ModulePlaces
from huai_client.state.seen import SeenDigests
from huai_client.state.state import State, applied_id
from huai_client.verify.check import denies_access
from huai_program.locking import holder
from huai_schema.entries import Directory, Entry, File
from huai_schema.paths import RelPath

Stamp: TypeAlias = tuple[int, int, int] | None
"""A value that changes whenever the state file is replaced."""
_OF_CONTENT = frozenset({"size", "mtime", "digest"})
_POLL_SECONDS = 0.1


class ExpectedTree:
    """The applied commit as this tree should have it, at one moment."""

    def __init__(self, mirror: Mirror, seen_digests: SeenDigests | None) -> None:
        """Wait, without a limit, until no run changes the tree; then read the applied commit.

        `seen_digests` has those that its files had when they arrived, if any are recorded.
        Raises `NotSyncedError` without one, `StateError` or `DamagedRepositoryError` if it cannot
        be read.
        """
        self.seen_digests = seen_digests
        self._places = mirror.paths
        self._module = mirror.config
        self.stamp, state = _steady(mirror.paths)
        self.applied = applied_id(state, mirror.upstream_name)
        commit = Repository(mirror.paths.repository, make=False).commit(self.applied)
        self.selection = applied_selection(commit, state)
        self.protection = Protection(mirror.config.protected)
        rules = list_volatile_rules(mirror.config, commit.descriptor)
        self._volatile = Matcher((rule.pattern, rule) for rule in rules)

    def holds(self) -> bool:
        """Return True if no run has changed the tree since, or was about to."""
        return _stamp(self._places) == self.stamp

    def required(self, entries: Iterable[Entry]) -> Iterable[Entry]:
        """Return those of `entries` that are not protected, so that this tree has to have them."""
        return filter(None, map(self.protection.rules.select, entries))

    def required_at(self, paths: Iterable[RelPath]) -> dict[RelPath, Entry]:
        """Return the entries that this tree has to have at `paths`."""
        entries = self.required(self.selection.entries_at(paths).values())
        return {entry.path: self.as_seen(entry) for entry in entries}

    def as_seen(self, entry: Entry) -> Entry:
        """Return a file without a stated digest with the one that was seen of it.

        Without a seen digest, and for all but the first name of a hardlink, returns it unchanged.
        """
        if self.seen_digests is None or not isinstance(entry, File):
            return entry
        if entry.digest is not None or entry.link is not None:
            return entry
        digest = self.seen_digests.find(entry)
        return entry if digest is None else entry._replace(digest=digest)

    def is_expected_deviation(self, deviation: FoundDifference) -> bool:
        """Return True for a difference on purpose, such as a delayed deletion or volatile file."""
        difference, expected = deviation
        if difference.kind is DifferenceKind.EXTRANEOUS:
            return difference.path in self._waits
        if difference.kind is DifferenceKind.UNREADABLE:
            shut = expected or self.selection.entry(difference.path)
            return isinstance(shut, Directory) and denies_access(shut)
        if self._module.duplicates == "hardlink" and difference.attributes == ("link",):
            # The file shares its inode with one of equal content, as `duplicates` allows.
            return isinstance(expected, File) and expected.link is None
        if self._changes_by_itself(difference, expected):
            return True
        return self._module.safe_links and is_unsafe(expected)

    def _changes_by_itself(self, difference: Difference, expected: Entry | None) -> bool:
        """Return True for a volatile file that is newer, older or missing."""
        if not isinstance(expected, File):
            return False
        is_content = difference.kind is DifferenceKind.MISSING or (
            difference.kind is DifferenceKind.DIFFERS
            and _OF_CONTENT.issuperset(difference.attributes)
        )
        return is_content and self._volatile.find(expected.path, symlink=False) is not None

    @cached_property
    def _waits(self) -> set[bytes]:
        """The paths that still exist because their deletion is delayed."""
        return {each.path for each in delayed_record.load(self._places.delayed)}


def _steady(places: ModulePlaces) -> tuple[Stamp, State]:
    """Wait until no run changes the tree; return the stamp of the state file, and the state."""
    while True:
        stamp = _stamp(places)
        state = states.load(places.state)
        if stamp == _stamp(places) and not (state.attempted and _runs(places)):
            return stamp, state
        time.sleep(_POLL_SECONDS)


def _runs(places: ModulePlaces) -> bool:
    """Return True if another process holds the lock."""
    return holder(places.lock) not in (None, os.getpid())


def _stamp(places: ModulePlaces) -> Stamp:
    """Return the stamp of the state file, None without one."""
    try:
        status = os.stat(places.state)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns
