"""Watching a module: watch its tree, commit it, follow events, and start over if that fails.

Order to keep: a tree is watched before it is scanned, so that the next commit has the changes made
meanwhile, and the paths for a commit are taken before it begins.  After lost events or a replaced
root the whole tree is watched and scanned again.  A file that is being written is committed in its
present state, and again after later events.  The next commit tries failed paths again.
"""

import math
import os
import select
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Never

from huai_native._native import ChangeList, TreeWatch
from huai_program.durations import seconds
from huai_program.humanize import counted
from huai_program.locking import locked
from huai_program.service_manager import notify
from huai_schema.errors import HuaiError
from huai_schema.paths import show
from huai_server.commit.change_lists import ChangeLists
from huai_server.commit.list_record import settings_of
from huai_server.commit.tree_reader import HOLES
from huai_server.config.load import load
from huai_server.scan.exclude import check_exclude
from huai_server.scan.mounts import MOUNTED_OVER, NOT_MOUNTED
from huai_server.scan.types import TIME, Problem, root_error
from huai_server.state.errors import StorageError, storage_errors
from huai_server.state.paths import module_places
from huai_server.store.repository import Repository
from huai_server.watch.mark import FileSystemMark
from huai_server.watch.record import WatchRecord, write_record
from huai_server.watch.schedule import Schedule

_LOOK = 1.0
"""Seconds between two checks of the root, because no event reports that it was deleted."""
_MOST_PATHS = 1 << 16
"""The most paths to hold in memory; for more the commit scans the tree."""
_LASTING = frozenset({HOLES, MOUNTED_OVER, NOT_MOUNTED, TIME})
"""Reasons of problems that remain when a path is read again."""
_LULL = 0.02
"""Seconds to wait for more events."""


class Observer(NamedTuple):
    """Callbacks that report the actions of a watcher."""

    watching: Callable[[WatchRecord], None]
    """Called when the tree is watched, for the first time or again."""
    behind: Callable[[int], None]
    """Called with the time (epoch) of the first change after a commit."""
    in_step: Callable[[int, float], None]
    """Called after a commit with the number of its events, and the oldest one's wait in seconds."""
    noted: Callable[[str], None]
    """Called with a warning for the administrator."""
    failed: Callable[[HuaiError], None]
    """Called with an error after which the watcher tries again."""


class Watcher:
    """A watcher of one module, of which only one runs at a time."""

    def __init__(
        self,
        root: Path,
        name: str,
        commit: Callable[[ChangeLists | None], Iterable[Problem]],
        observer: Observer,
        schedule: Schedule,
    ) -> None:
        """`commit` commits the listed paths, or the whole tree for None, and returns problems.

        `root` is the state root.  Raises a `HuaiError` if the module is unknown or relayed.
        """
        self._root = root
        self._name = name
        self._module = load(root).committed_module(name)
        self._settings = settings_of(self._module)
        self._places = module_places(root, name)
        self._commit = commit
        self._observer = observer
        self._schedule = schedule
        self._record = WatchRecord()
        self._identity: tuple[int, int] | None = None
        self._mark: FileSystemMark | None = None
        """The source of events where inotify does not watch all directories."""
        self._renewal = math.inf
        """The time (epoch) from which on a commit renews the signature of the newest one."""

    def run(self) -> Never:
        """Watch until a signal ends the program; notify systemd of the status.

        Raises `LockedError` if another process watches the module.
        """
        with storage_errors(self._places.folder):
            self._places.folder.mkdir(parents=True, exist_ok=True)
            with locked(self._places.watching):
                notify("READY=1", "STATUS=starting to watch")
                self._schedule.commit_now(time.monotonic())
                while True:
                    watched = self._begin()
                    while self._follow(watched):
                        pass

    def _begin(self) -> TreeWatch:
        """Watch the tree; wait while its root is missing, which is reported once."""
        is_reported = False
        while True:
            try:
                watched = self._watch()
            except OSError as error:
                if not is_reported:
                    self._observer.failed(root_error(Path(self._module.path), error))
                is_reported = True
                time.sleep(_LOOK)
                continue
            self._update_record(watched)
            self._observer.watching(self._record)
            self._report_unwatched(watched)
            return watched

    def _watch(self) -> TreeWatch:
        """Start to watch the tree, and record its inode; raises `OSError` if it is unreadable.

        Where not all directories can be watched, the file system is watched, if that is allowed.
        """
        module = self._module
        self._identity = _identity(Path(module.path))
        if self._mark:
            self._mark.close()
            self._mark = None
        watched = self._tree()
        if watched.unwatched and module.one_file_system:
            with suppress(OSError):
                self._mark = FileSystemMark(os.fsencode(module.path))
                self._observer.noted(
                    "too many directories for inotify: events are those of the whole file system "
                    "(fanotify)"
                )
                return self._tree(is_noted=True)
        return watched

    def _tree(self, *, is_noted: bool = False) -> TreeWatch:
        module = self._module
        return TreeWatch(
            os.fsencode(module.path),
            [check_exclude(os.fsencode(each)) for each in module.exclude],
            one_file_system=module.one_file_system,
            most=_MOST_PATHS,
            is_noted=is_noted,
        )

    def _follow(self, watched: TreeWatch) -> bool:
        """Wait at most a second for events and count them, or commit if it is due.

        Returns False if the tree must be watched again.
        """
        due = self._schedule.due()
        wait = _LOOK if due is None else min(_LOOK, due - time.monotonic())
        if wait > 0 and _is_readable(self._mark or watched, wait):
            time.sleep(_LULL)
            events, is_overflowed, is_root_gone = (
                self._mark.read(watched) if self._mark else watched.read()
            )
            if events:
                self._add_events(events)
            if is_overflowed:
                self._rescan("the kernel's queue overflowed (max_queued_events)")
                return False
            if is_root_gone:
                self._rescan(f"{self._module.path} was moved, deleted or unmounted")
                return False
        if self._identity != _identity_or_none(Path(self._module.path)):
            self._rescan(f"{self._module.path} is another directory now")
            return False
        if time.time() > self._renewal:
            self._renewal = math.inf  # a commit that fails is tried again as any other
            self._schedule.commit_now(time.monotonic())
        due = self._schedule.due()
        if due is not None and due <= time.monotonic():
            self._commit_now(watched)
        return True

    def _commit_now(self, watched: TreeWatch) -> None:
        """Commit the changed paths; an error is reported, and they wait for the next attempt."""
        schedule = self._schedule
        changes, since = schedule.changes, schedule.since
        schedule.begin_commit()
        notify("STATUS=committing")
        changed = watched.take()
        try:
            problems = self._commit(self._lists(changed))
            self._renewal = self._renewal_time()
        except HuaiError as error:
            watched.give_back(changed and changed[0])
            schedule.restore(time.monotonic())
            self._observer.failed(error)
        else:
            watched.add([each.path for each in problems if each.reason not in _LASTING])
            waited = 0.0 if since is None else time.monotonic() - since
            self._observer.in_step(changes, waited)
        if watched.unwatched:
            schedule.commit_later(time.monotonic())
        self._update_record(watched)
        notify("STATUS=watching")

    def _renewal_time(self) -> float:
        """Return the time (epoch) for `_renewal`: infinite if commits are not signed."""
        signing, head = load(self._root).signing, Repository(self._places.repository).head()
        if signing is None or head is None:
            return math.inf
        return head.valid_until - seconds(signing.validity) / 2

    def _lists(self, changed: tuple[ChangeList, int] | None) -> ChangeLists | None:
        """Return the paths to commit, from `changed` (list and number); None for the whole tree.

        That is the case without `changed`, or if the settings of the module have changed.
        """
        if changed is None or settings_of(load(self._root).module(self._name)) != self._settings:
            return None
        changes, paths = changed
        return ChangeLists(changes, paths, 0, (), is_cut=False, names_links=False)

    def _rescan(self, reason: str) -> None:
        """Report `reason`, and make a commit due; the caller watches the tree again."""
        self._observer.noted(f"{reason}: the whole tree is watched and scanned again")
        self._add_events(1)

    def _add_events(self, events: int) -> None:
        """Count events; record and report the first one that waits for a commit."""
        first = self._schedule.since is None
        self._schedule.add_events(time.monotonic(), events)
        if first:
            now = int(time.time())
            self._save_record(WatchRecord(self._record.directories, self._record.unwatched, now))
            self._observer.behind(now)

    def _update_record(self, watched: TreeWatch) -> None:
        """Write the record for `status`: what is watched, and the oldest uncommitted change."""
        unwatched = watched.unwatched
        since = self._schedule.since
        moment = None if since is None else int(time.time() - (time.monotonic() - since))
        count = unwatched[0] if unwatched else 0
        self._save_record(WatchRecord(watched.directories, count, moment))

    def _save_record(self, record: WatchRecord) -> None:
        """Write the record for `status`; an error is reported, because only `status` needs it."""
        self._record = record
        try:
            with storage_errors(self._places.watched):
                write_record(self._places, record)
        except StorageError as error:
            self._observer.failed(error)

    def _report_unwatched(self, watched: TreeWatch) -> None:
        """Report the number of directories that cannot be watched, if there are any."""
        if watched.unwatched is None:
            return
        count, path, errno = watched.unwatched
        self._observer.noted(
            f"{counted(count, 'directory', 'directories')} cannot be watched, nor those below, "
            f"for example {show(path)}: {os.strerror(errno)}; raise fs.inotify.max_user_watches "
            "above the number of directories. Until then the tree is scanned repeatedly"
        )


def _is_readable(watched: TreeWatch | FileSystemMark, seconds: float) -> bool:
    """True if an event comes within `seconds`."""
    waiting = select.poll()
    waiting.register(watched.fileno(), select.POLLIN)
    return bool(waiting.poll(1000 * seconds))


def _identity(top: Path) -> tuple[int, int]:
    """Return the device and the inode of a directory; raises `OSError` if it is missing."""
    status = os.stat(top)
    return status.st_dev, status.st_ino


def _identity_or_none(top: Path) -> tuple[int, int] | None:
    """Return a directory's device and inode; None if it is missing or unreadable."""
    try:
        return _identity(top)
    except OSError:
        return None
