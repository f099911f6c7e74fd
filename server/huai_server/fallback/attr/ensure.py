"""Bringing a module's attr tree up to its newest commit.

Order of writes: a new generation is whole before it is served; the state says that an update in
place begins before its first change, so an interrupted update is followed by a build.  Before any
change it is checked that the attr tree belongs to this state root (`belonging`).
"""

import errno
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from huai_program.locking import locked
from huai_schema.errors import FormatError
from huai_schema.layout.snapshot import Snapshot
from huai_server.config.tables import Module
from huai_server.fallback.attr import belonging, foreign_changes, generations
from huai_server.fallback.attr import state as states
from huai_server.fallback.attr.kinds import configured_kind, discard_of
from huai_server.fallback.attr.state import AttrState
from huai_server.fallback.attr.update import root_time
from huai_server.fallback.kind import AttrTreeError, Update
from huai_server.fallback.owners import OwnerIds
from huai_server.state.errors import storage_errors
from huai_server.state.paths import FallbackPlaces, ModulePlaces
from huai_server.store.repository import Head, Repository, StoreError, read_head

WAIT_SECONDS = 600.0
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM)
_TOO_LARGE = (errno.EFBIG, errno.EOVERFLOW)
_MOST_SPANS = 32
"""Updates after which the attr tree is looked at, even if the caller does not ask for it."""

Building = Callable[[], AbstractContextManager[None]]
"""Entered while a new attr tree is made, which may be interrupted; an update may not."""


@dataclass(frozen=True, slots=True)
class AttrTreeResult:
    """What was done, and what the attr tree is now."""

    action: Literal["none", "updated", "built"]
    kind: str
    commit: str
    """Hex id of the newest commit, which the attr tree lists now."""
    serial: int
    entries: int
    """Of the whole tree."""
    changes: int
    """Entries that were changed; after a build all of them."""
    memory: int
    """About how many bytes it takes."""
    seconds: float
    warnings: tuple[str, ...] = ()


def is_current(module: Module, places: ModulePlaces, fallback: FallbackPlaces) -> bool:
    """Whether the attr tree is this root's, whole, served and of the newest commit.

    Reads a few small files, takes no lock; False while an update runs.
    """
    if not belonging.is_own(places, fallback) or fallback.updating.exists():
        return False
    state = states.load(fallback.state)
    if state is None or state.target is not None or state.kind != module.fallback.kind:
        return False
    if state.generation != generations.served_generation(fallback) or not generations.is_sealed(
        fallback
    ):
        return False
    if not generations.points_to(fallback, module.path):
        return False
    head = read_head(places.repository) if places.repository.exists() else None
    return head is not None and head.commit == state.commit


def ensure(  # noqa: PLR0913 (what is wanted, and on what terms)
    name: str,
    module: Module,
    places: ModulePlaces,
    fallback: FallbackPlaces,
    *,
    rebuild: bool = False,
    look: bool = False,
    wait: float = WAIT_SECONDS,
    building: Building = nullcontext,
) -> AttrTreeResult:
    """Build or update, whichever is needed.

    `rebuild`: always make a new one, even if the old one lists another path.  `look`: make a new
    one if another program has changed the old one.  `wait`: seconds to wait for another run.

    Raises:
        LockedError: another run did not end in time.
        AttrTreeError: (53) it belongs to another state root, the module has no commit, or there
            is no room.
        StoreError: the metadata repository is damaged.
    """
    belonging.check_own(name, places, fallback)
    with storage_errors(fallback.folder), _explained(name, fallback):
        generations.make_folder(fallback.folder.parent)
        generations.make_folder(fallback.folder)
        with locked(fallback.lock, wait=wait):
            belonging.check_own(name, places, fallback)
            if not rebuild:
                belonging.check_path(name, module, fallback)
            generations.make_own_folder(fallback)
            ready = _Ensure(name, module, places, fallback, building)
            return ready.run(rebuild=rebuild, look=look)


class _Ensure:
    """One run; the caller holds the lock."""

    def __init__(
        self,
        name: str,
        module: Module,
        places: ModulePlaces,
        fallback: FallbackPlaces,
        building: Building,
    ) -> None:
        self._module = module
        self._places = places
        self._fallback = fallback
        self._building = building
        self._kind = configured_kind(name, module, places)
        self._discard = discard_of(places)
        if not places.repository.exists():
            raise _nothing_to_list(name)
        self._repository = Repository(places.repository)
        head = self._repository.head()
        if head is None:
            raise _nothing_to_list(name)
        self._head: Head = head
        self._owners = OwnerIds() if module.owners else None
        self._started = time.monotonic()

    def run(self, *, rebuild: bool, look: bool) -> AttrTreeResult:
        state = None if rebuild else self._usable(look=look)
        if state is None:
            result = self._build()
        elif state.commit == self._head.commit:
            result = self._result("none", 0, 0)
        else:
            result = self._update(state)
        generations.discard_old(self._fallback, self._discard)
        return result

    def _usable(self, *, look: bool) -> AttrState | None:
        """The state of an attr tree that can be updated; None: a new one has to be made."""
        state = states.load(self._fallback.state)
        if state is None or not self._is_whole(state):
            return None
        # The state is written last: where it names the commit, an update had ended.
        self._fallback.updating.unlink(missing_ok=True)
        if not look and len(state.spans) < _MOST_SPANS:
            return state
        one_pass = foreign_changes.ForeignChanges(self._fallback)
        one_pass.run()
        if one_pass.damage is not None:
            generations.distrust(self._fallback)
            return None
        state = replace(state, spans=one_pass.proved(state))
        states.save(self._fallback.state, state)
        return state

    def _is_whole(self, state: AttrState) -> bool:
        return (
            state.target is None
            and belonging.is_own(self._places, self._fallback)
            and state.kind == self._module.fallback.kind
            and state.generation == generations.served_generation(self._fallback)
            and generations.points_to(self._fallback, self._module.path)
            and generations.is_sealed(self._fallback)
        )

    def _update(self, state: AttrState) -> AttrTreeResult:
        generation = self._fallback.generations / state.generation
        new = self._snapshot()
        update = self._planned(state, new)
        if update is None:
            return self._build()
        states.save(self._fallback.state, replace(state, target=self._head.commit))
        begun = foreign_changes.begin()
        try:
            with generations.updating(self._fallback):
                generations.seal(self._fallback, root_time(new))
                unowned = update.run()
                spans = (*state.spans, foreign_changes.until_now(begun))
                states.save(self._fallback.state, self._state(state.generation, spans))
        except OSError as error:
            if error.errno in _FULL or not generation.is_dir():
                raise
            # The state says something else: the links were changed by hand.
            return self._build()
        return self._result("updated", update.changes, unowned)

    def _planned(self, state: AttrState, new: Snapshot) -> Update | None:
        generation = self._fallback.generations / state.generation
        try:
            before = Head(state.commit, state.tree, 0, self._head.info)
            old = self._repository.snapshot(before)[1]
            return self._kind.plan(generation, old, new, self._owners)
        except FormatError:
            return None  # its commit is no longer in the repository

    def _build(self) -> AttrTreeResult:
        totals = self._head.info.totals
        # Generations without readers are deleted first, to make room.
        generations.discard_old(self._fallback, self._discard)
        self._kind.check_room(self._fallback.folder, totals)
        name = generations.next_name(self._fallback)
        generation = self._fallback.generations / name
        try:
            with self._building():
                unowned = self._kind.make(generation, self._snapshot(), self._owners)
        except BaseException:
            if generation.exists():
                self._kind.discard(generation)
            raise
        spans = (foreign_changes.until_now(0),) if self._kind.writable else ()
        belonging.claim(self._places, self._fallback)
        generations.serve_generation(self._fallback, name, self._module.path)
        states.save(self._fallback.state, self._state(name, spans))
        return self._result("built", totals.entries, unowned)

    def _state(self, generation: str, spans: tuple[tuple[int, int], ...]) -> AttrState:
        """The state to record for the newest commit."""
        head = self._head
        return AttrState(
            self._module.fallback.kind,
            head.commit,
            head.tree,
            head.info.serial,
            head.info.totals.entries,
            generation,
            spans=spans,
        )

    def _snapshot(self) -> Snapshot:
        return self._repository.snapshot(self._head)[1]

    def _result(
        self, action: Literal["none", "updated", "built"], changes: int, unowned: int
    ) -> AttrTreeResult:
        info = self._head.info
        return AttrTreeResult(
            action,
            self._module.fallback.kind,
            self._head.commit,
            info.serial,
            info.totals.entries,
            changes,
            self._kind.memory(info.totals),
            time.monotonic() - self._started,
            tuple(self._warnings(unowned)),
        )

    def _warnings(self, unowned: int) -> Iterator[str]:
        if unowned:
            yield f"{unowned:,} entries have another owner here: only root can give files away"
        unknown = sorted(self._owners.unknown) if self._owners else []
        if unknown:
            yield f"{', '.join(unknown[:5])}: not known on this machine, listed as root's"


def _nothing_to_list(name: str) -> AttrTreeError:
    return AttrTreeError(
        f"module {name!r} has no commit to list", hint=f"run: huai-server commit {name}"
    )


@contextmanager
def _explained(name: str, fallback: FallbackPlaces) -> Iterator[None]:
    try:
        yield
    except FormatError as error:
        raise StoreError(
            f"the metadata of {name}: {error.message}",
            hint=f"`huai-server check {name}` tells what is damaged",
        ) from error
    except OSError as error:
        if error.errno in _TOO_LARGE:
            raise AttrTreeError(
                f"{error.filename}: this file system cannot hold its size or its time",
                hint="set fallback.folder to a folder on a tmpfs",
            ) from error
        if error.errno not in _FULL:
            raise
        raise AttrTreeError(
            f"{fallback.folder}: {error.strerror}: no room for the attr tree of {name}",
            hint="make room there, or set fallback.folder to another folder; then run "
            f"huai-server fallback build {name}",
        ) from error
