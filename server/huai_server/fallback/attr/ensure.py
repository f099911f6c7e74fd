"""Bringing a module's attr tree up to its newest commit.

Order of writes: a new generation is complete before it is served.  The state records an update in
place before its first change, so an interrupted update is followed by a build.  Each change
requires a check that the attr tree belongs to this state root (`tree`).
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
from huai_schema.paths import ROOT
from huai_server.fallback.attr import foreign_changes, generations
from huai_server.fallback.attr.state import STATE_FILE, AttrState
from huai_server.fallback.attr.tree import AttrTree
from huai_server.fallback.kind import AttrTreeError
from huai_server.fallback.owners import OwnerIds
from huai_server.state.errors import storage_errors
from huai_server.state.paths import FallbackPlaces
from huai_server.store.repository import Repository, metadata_errors

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM)
_TOO_LARGE = (errno.EFBIG, errno.EOVERFLOW)
_MOST_SPANS = 32
"""The number of updates after which the attr tree is checked for foreign changes in any case."""

Building = Callable[[], AbstractContextManager[None]]
"""Entered while a new attr tree is made, which may be interrupted, unlike an update."""


@dataclass(frozen=True, slots=True)
class AttrTreeResult:
    """The action that was taken, and the state of the attr tree after it."""

    action: Literal["none", "updated", "built"]
    kind: str
    commit: str
    """Hex id of the newest commit, which the attr tree lists now."""
    serial: int
    entries: int
    changes: int
    """The number of changed entries; after a build all of them."""
    memory: int
    """The approximate size of the attr tree in bytes."""
    seconds: float
    warnings: tuple[str, ...] = ()


def ensure(
    tree: AttrTree,
    *,
    rebuild: bool = False,
    look: bool = False,
    wait: float = 600.0,
    building: Building = nullcontext,
) -> AttrTreeResult:
    """Build or update the attr tree, as needed; delete old generations that no client reads.

    `rebuild` always builds a new attr tree, even if the old one lists another path.  `look` builds
    a new one if another program has changed the old one.  Waits up to `wait` seconds for another
    run.

    Raises:
        LockedError: another run did not end in time.
        AttrTreeError: (53) it belongs to another state root, the module has no commit, or the
            space is too small.
        StoreError: the metadata repository is damaged.
    """
    tree.check_own()
    fallback = tree.fallback
    with (
        storage_errors(fallback.folder),
        metadata_errors(tree.name),
        _attr_tree_errors(tree.name, fallback),
    ):
        generations.make_folder(fallback.folder)
        with locked(fallback.lock, wait=wait):
            tree.check_own()
            if not rebuild:
                tree.check_path()
            generations.make_own_folder(fallback)
            return _Ensure(tree, building).run(rebuild=rebuild, look=look)


class _Ensure:
    """One run of `ensure`; the caller holds the attr tree's lock."""

    def __init__(self, tree: AttrTree, building: Building) -> None:
        """Read the newest commit.

        Raises `AttrTreeError` without a commit, or if the module's kind has no attr tree.
        """
        self._tree = tree
        self._fallback = tree.fallback
        self._building = building
        self._kind = tree.kind()
        head = tree.head()
        if head is None:
            raise AttrTreeError(
                f"module {tree.name!r} has no commit to list",
                hint=f"run: huai-server commit {tree.name}",
            )
        self._head = head
        self._repository = Repository(tree.places.repository)
        self._owners = OwnerIds() if tree.module.owners else None
        self._started = time.monotonic()

    def run(self, *, rebuild: bool, look: bool) -> AttrTreeResult:
        """Build the attr tree, update it, or leave it; then delete unserved generations.

        `rebuild` and `look` are as for `ensure`.
        """
        state = None if rebuild else self._load_usable(look=look)
        if state is None:
            result = self._build()
        elif state.commit == self._head.commit:
            result = self._result("none", 0, 0)
        else:
            result = self._update(state)
        generations.discard_unserved(self._fallback, self._tree.discard)
        return result

    def _load_usable(self, *, look: bool) -> AttrState | None:
        """Return the state of an attr tree that can be updated; None if it must be rebuilt.

        With `look`, or many spans, searches it for foreign changes; if it has any, it is unsealed,
        so that new clients are refused.
        """
        state = self._tree.whole_state()
        if state is None:
            return None
        # The state is written last: if it names the commit, the update was complete.
        self._fallback.updating.unlink(missing_ok=True)
        if not look and len(state.spans) < _MOST_SPANS:
            return state
        one_pass = foreign_changes.ForeignChanges(self._fallback)
        one_pass.run()
        if one_pass.damage is not None:
            generations.unseal(self._fallback)
            return None
        state = replace(state, spans=one_pass.merged_spans(state))
        STATE_FILE.save(self._fallback.state, state)
        return state

    def _update(self, state: AttrState) -> AttrTreeResult:
        """Change the served generation in place, or build another one where that is impossible."""
        generation = self._fallback.generations / state.generation
        new = self._snapshot()
        try:
            old = state.snapshot(self._repository, self._head)
            update = self._kind.plan(generation, old, new, self._owners)
        except FormatError:
            update = None  # its commit is no longer in the repository
        if update is None:
            return self._build()
        STATE_FILE.save(self._fallback.state, replace(state, target=self._head.commit))
        begun = foreign_changes.coarse_now()
        try:
            with generations.mark_updating(self._fallback):
                root = new.directory(ROOT)
                generations.seal(self._fallback, 0 if root is None else root.mtime)
                unowned = update.run()
                spans = (*state.spans, foreign_changes.until_now(begun))
                self._save_state(state.generation, spans)
        except OSError as error:
            if error.errno in _FULL or not generation.is_dir():
                raise
            # The links were changed by hand, and do not match the state.
            return self._build()
        return self._result("updated", update.changes, unowned)

    def _build(self) -> AttrTreeResult:
        """Make a new generation and serve it, as this root's; delete it if that fails.

        Deletes generations without readers first.  Raises `AttrTreeError` if space is lacking.
        """
        totals = self._head.info.totals
        # Generations without readers are deleted first, to make room.
        generations.discard_unserved(self._fallback, self._tree.discard)
        self._kind.check_room(totals)
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
        self._tree.claim()
        generations.serve_generation(self._fallback, name, self._tree.module.path)
        self._save_state(name, spans)
        return self._result("built", totals.entries, unowned)

    def _save_state(self, generation: str, spans: tuple[tuple[int, int], ...]) -> None:
        """Write the state of an attr tree that lists the newest commit."""
        head, info, kind = self._head, self._head.info, self._tree.module.fallback.kind
        numbers = info.serial, info.totals.entries
        state = AttrState(kind, head.commit, head.tree, *numbers, generation, spans=spans)
        STATE_FILE.save(self._fallback.state, state)

    def _snapshot(self) -> Snapshot:
        """Return the snapshot of the newest commit."""
        return self._repository.snapshot(self._head)[1]

    def _result(
        self, action: Literal["none", "updated", "built"], changes: int, unowned: int
    ) -> AttrTreeResult:
        """Return the result of an `action` on so many entries (`changes`).

        `unowned` is the number of owners that could not be set.
        """
        entries = self._head.info.totals.entries
        return AttrTreeResult(
            action,
            self._tree.module.fallback.kind,
            self._head.commit,
            self._head.info.serial,
            entries,
            changes,
            entries * self._kind.ENTRY_BYTES,
            time.monotonic() - self._started,
            tuple(self._warnings(unowned)),
        )

    def _warnings(self, unowned: int) -> Iterator[str]:
        """Yield warnings about `unowned` entries, and about owners that are unknown here."""
        if unowned:
            yield f"{unowned:,} entries have another owner here: only root can change owners"
        unknown = sorted(self._owners.unknown) if self._owners else []
        if unknown:
            yield f"{', '.join(unknown[:5])}: unknown on this machine, listed as root"


@contextmanager
def _attr_tree_errors(name: str, fallback: FallbackPlaces) -> Iterator[None]:
    """Convert an `OSError` for too little room or too large values to an `AttrTreeError`."""
    try:
        yield
    except OSError as error:
        if error.errno in _TOO_LARGE:
            raise AttrTreeError(
                f"{error.filename}: this file system cannot hold its size or its time",
                hint="set fallback.folder to a folder on a tmpfs",
            ) from error
        if error.errno not in _FULL:
            raise
        raise AttrTreeError(
            f"{fallback.folder}: {error.strerror}: not enough room for the attr tree of {name}",
            hint="make room there, or set fallback.folder to another folder; then run "
            f"huai-server fallback build {name}",
        ) from error
