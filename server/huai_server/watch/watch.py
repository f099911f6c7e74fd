"""Watching a module: begin to watch, commit, follow what happens, and begin again if that fails.

Order to keep: a tree is watched before it is scanned, so that what changes meanwhile is seen, and
committed next; and the paths for a commit are taken before it begins.  After events were lost, or
the root was replaced, everything is watched anew and scanned.  A commit takes what it looks at as
it finds it: a file that is being written is committed as it is, and by later events once more.
What a commit could not use, because it failed or a path could not be read, is of the next one.
"""

import os
import select
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, Never

from huai_native._native import ChangeList, TreeWatch
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
from huai_server.state.errors import storage_errors
from huai_server.state.paths import module_places
from huai_server.watch.record import WatchRecord, write_record
from huai_server.watch.schedule import Schedule

_LOOK = 1.0
"""Seconds between two looks at the root: nothing tells that it was deleted while it is watched."""
_MOST_PATHS = 1 << 16
"""A commit of more paths than these scans instead: they are held in memory."""
_LASTING = frozenset({HOLES, MOUNTED_OVER, NOT_MOUNTED, TIME})
"""Reasons that a list does not get rid of, however often it looks again."""
_LULL = 0.02
"""Seconds in which more events gather."""


class Observer(NamedTuple):
    """Hears what a watcher does."""

    watching: Callable[[WatchRecord], None]
    """The tree is watched, for the first time or anew."""
    behind: Callable[[], None]
    """The first change since the last commit was seen."""
    in_step: Callable[[int, float], None]
    """A commit went well: how many events it follows, and how many seconds the oldest waited."""
    noted: Callable[[str], None]
    """Something that the administrator should know."""
    failed: Callable[[HuaiError], None]
    """Something failed that is tried again."""


class Watcher:
    """Watches one module; only one at a time does."""

    def __init__(
        self,
        root: Path,
        name: str,
        commit: Callable[[ChangeLists | None], Iterable[Problem]],
        observer: Observer,
        schedule: Schedule,
    ) -> None:
        """`commit` commits what lists name, or the whole module, or raises; it returns problems."""
        self._root = root
        self._name = name
        self._module = load(root).committed(name)
        self._settings = settings_of(self._module)
        self._places = module_places(root, name)
        self._commit = commit
        self._observer = observer
        self._schedule = schedule
        self._record = WatchRecord()
        self._identity: tuple[int, int] | None = None

    def run(self) -> Never:
        """Watch until a signal ends the program; `LockedError` if somebody else does."""
        with storage_errors(self._places.folder):
            self._places.folder.mkdir(parents=True, exist_ok=True)
            with locked(self._places.watching):
                notify("READY=1", "STATUS=beginning to watch")
                self._schedule.at_once(time.monotonic())
                while True:
                    watched = self._begin()
                    while self._follow(watched):
                        pass

    def _begin(self) -> TreeWatch:
        """Watch the tree, as soon as its root is there."""
        told = False
        while True:
            try:
                watched = self._watch()
            except OSError as error:
                if not told:
                    self._observer.failed(root_error(Path(self._module.path), error))
                told = True
                time.sleep(_LOOK)
                continue
            self._remember(watched)
            self._observer.watching(self._record)
            self._say_unwatched(watched)
            return watched

    def _watch(self) -> TreeWatch:
        module = self._module
        self._identity = _identity(Path(module.path))
        return TreeWatch(
            os.fsencode(module.path),
            [check_exclude(os.fsencode(each)) for each in module.exclude],
            one_file_system=module.one_file_system,
            most=_MOST_PATHS,
        )

    def _follow(self, watched: TreeWatch) -> bool:
        """Wait for events or the next commit; False: the tree has to be watched anew."""
        due = self._schedule.due()
        wait = _LOOK if due is None else min(_LOOK, due - time.monotonic())
        if wait > 0 and _is_readable(watched, wait):
            time.sleep(_LULL)
            events, lost, gone = watched.read()
            if events:
                self._touched(events)
            if lost:
                self._again("more happened than the kernel keeps (fs.inotify.max_queued_events)")
                return False
            if gone:
                self._again(f"{self._module.path} was moved, deleted or unmounted")
                return False
            return True
        if self._identity != _identity_or_none(Path(self._module.path)):
            self._again(f"{self._module.path} is another directory now")
            return False
        due = self._schedule.due()
        if due is not None and due <= time.monotonic():
            self._commit_now(watched)
        return True

    def _commit_now(self, watched: TreeWatch) -> None:
        schedule = self._schedule
        changes, since = schedule.changes, schedule.since
        schedule.began()
        notify("STATUS=committing")
        taken = watched.take()
        try:
            problems = self._commit(self._lists(taken))
        except HuaiError as error:
            watched.give_back(taken and taken[0])
            schedule.failed(time.monotonic())
            self._observer.failed(error)
        else:
            watched.add([each.path for each in problems if each.reason not in _LASTING])
            waited = 0.0 if since is None else time.monotonic() - since
            self._observer.in_step(changes, waited)
        if watched.unwatched:
            schedule.later(time.monotonic())
        self._remember(watched)
        notify("STATUS=watching")

    def _lists(self, taken: tuple[ChangeList, int] | None) -> ChangeLists | None:
        """What to look at; None: the whole tree, as where something else is watched by now."""
        if taken is None or settings_of(load(self._root).module(self._name)) != self._settings:
            return None
        named, paths = taken
        return ChangeLists(named, paths, 0, (), is_cut=False, names_links=False)

    def _again(self, reason: str) -> None:
        self._observer.noted(f"{reason}: the whole tree is watched and scanned anew")
        self._touched(1)

    def _touched(self, events: int) -> None:
        first = self._schedule.since is None
        self._schedule.touched(time.monotonic(), events)
        if first:
            self._record = WatchRecord(
                self._record.directories, self._record.unwatched, int(time.time())
            )
            write_record(self._places, self._record)
            self._observer.behind()

    def _remember(self, watched: TreeWatch) -> None:
        unwatched = watched.unwatched
        since = self._schedule.since
        moment = None if since is None else int(time.time() - (time.monotonic() - since))
        count = unwatched[0] if unwatched else 0
        self._record = WatchRecord(watched.directories, count, moment)
        write_record(self._places, self._record)

    def _say_unwatched(self, watched: TreeWatch) -> None:
        if watched.unwatched is None:
            return
        count, path, errno = watched.unwatched
        self._observer.noted(
            f"{counted(count, 'directory', 'directories')} cannot be watched, nor what is below, "
            f"for example {show(path)}: {os.strerror(errno)}; raise fs.inotify.max_user_watches "
            "above the number of directories. Until then the tree is scanned again and again"
        )


def _is_readable(watched: TreeWatch, seconds: float) -> bool:
    waiting = select.poll()
    waiting.register(watched.fileno(), select.POLLIN)
    return bool(waiting.poll(1000 * seconds))


def _identity(top: Path) -> tuple[int, int]:
    status = os.stat(top)
    return status.st_dev, status.st_ino


def _identity_or_none(top: Path) -> tuple[int, int] | None:
    try:
        return _identity(top)
    except OSError:
        return None
