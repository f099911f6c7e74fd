"""Undoing the last sync: back to the commit that was applied before, out of the trash.

A sync in another direction: planned, recorded, published and finished like any other, and finished
by the next run if it is interrupted.  Asks no upstream.  Rule to keep: that everything is here is
known before the first change.
"""

from collections.abc import Sequence
from dataclasses import replace

from huai_client.config import Module
from huai_client.filters import Rules
from huai_client.metadata.repository import Commit
from huai_client.metadata.upstream import Upstream
from huai_client.plan.prepared import Prepared
from huai_client.plan.summary import summarize
from huai_client.publish.trash.keeping import TRASH
from huai_client.publish.trash.restoring import restoring
from huai_client.run_options import SyncOptions
from huai_client.state.paths import ModulePlaces
from huai_client.state.state import State
from huai_client.sync.result import Observer, SyncResult
from huai_client.sync.sync import Sync
from huai_client.transfer import Listener, Outcome
from huai_client.transfer.local import Trust
from huai_client.transfer.stage import Brought, bring
from huai_client.transfer.stage_content import Supply, wanted_content
from huai_client.transfer.staging import Staging, key_of
from huai_client.tree import Tree, View
from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import show
from huai_schema.program.counting import counted

_ALWAYS = 1 << 63
_MISSING = ("file that was there before is", "files that were there before are")
_SHOWN = 3


class NothingToUndoError(HuaiError):
    """No way back was kept."""

    exit_code = ExitCode.DIFFERS


class NotUndoableError(HuaiError):
    """The trash lacks something that is needed to go back."""

    exit_code = ExitCode.PARTIAL

    def __init__(self, missing: Sequence[File]) -> None:
        """`missing` are the files whose content is nowhere."""
        first = ", ".join(show(file.path) for file in missing[:_SHOWN])
        super().__init__(
            f"{counted(len(missing), *_MISSING)} not in the trash any more, for "
            f"example {first}; nothing was changed",
            hint="what is left is in .~tmp~/huai-trash; after an interrupted undo, "
            "`huai-client sync --unhold` goes to the newest commit instead",
        )


class _Trash(Supply):
    """Content from this machine alone."""

    def check(self, prepared: Prepared, tree: Tree) -> None:
        """No upstream is needed; whether there is room is seen when something has to be copied."""

    def bring(
        self, prepared: Prepared, tree: Tree, staging: Staging, _listener: Listener, _synced: int
    ) -> Brought:
        """Stage the content of all files; `NotUndoableError` if some is another than it was."""
        files = wanted_content(prepared.plan)
        staging.prune({key_of(file) for file in files})

        def nothing_else(wanted: Sequence[File]) -> Outcome:
            absent = [file for file in wanted if not staging.ready(file)]
            if absent:
                staging.remove()
                raise NotUndoableError(absent)
            return Outcome(list(wanted), [], [], 0)

        trust = Trust(_ALWAYS, hardlink=False)
        return bring(files, prepared.plan.reuses, tree, staging, trust, nothing_else)


class Undo(Sync):
    """One run back; the caller holds the module's lock."""

    def __init__(self, name: str, module: Module, places: ModulePlaces, upstream: Upstream) -> None:
        """`NothingToUndoError` if there is no way back.

        The limits on deletions are those of syncs: who undoes one knows what it brought.
        """
        everything = tuple(f"{directory}=100%" for directory in module.max_delete_in)
        options = SyncOptions(max_delete="100%", accept_rollback=True, max_delete_in=everything)
        super().__init__(name, module, places, options, upstream)
        self._supply = _Trash(module, upstream)
        state = self._state
        self._target, self._filter, undone = _target(name, state)
        if not self._repository.has(self._target):
            raise NothingToUndoError(
                f"{name}: the metadata of what was there before are not here any more",
                hint="adopt an older commit from an upstream that still has it",
            )
        self._state = replace(state, held=undone)

    def run(self, observer: Observer) -> SyncResult:
        """Bring the tree back; what was taken out of the trash leaves it at the end."""
        result = super().run(observer)
        if result.exit_code == ExitCode.OK and result.prepared:
            for reuse in result.prepared.plan.reuses.values():
                if reuse.source.startswith(TRASH):
                    self._ground.bin.discard(reuse.source)
        return result

    def _prepare(self, view: View) -> Prepared:
        commit = self._repository.commit(self._target)
        rules = Rules.from_key(self._filter)
        prepared = self._planning.update(view, commit, self._state, rules)
        plan, missing = restoring(prepared.plan, self._ground.bin.batches(), view)
        if missing:
            raise NotUndoableError(missing)
        summary = summarize(plan)._replace(delayed=prepared.summary.delayed)
        return prepared._replace(plan=plan, summary=summary)

    def _finished(self, prepared: Prepared) -> State:
        held = self._state.held
        return replace(super()._finished(prepared), before="", before_filter="", held=held)

    def _identity(self, _commit: Commit) -> str:
        """The upstream is who it was, also if what is gone back to came from another."""
        return self._state.identity


def _target(name: str, state: State) -> tuple[str, str, str]:
    """The commit to go back to, its filter, and the commit that is undone."""
    if state.applied and state.attempted and state.held != state.applied:
        # An interrupted sync, or the undo of one.
        return state.applied, state.filter, state.held or state.attempted[-1]
    if not state.before or not state.applied:
        raise NothingToUndoError(
            f"{name}: there is no sync to undo: it was undone already, or the trash was off",
            hint='from the next sync on there is a way back with trash = "7d" in client.toml',
        )
    return state.before, state.before_filter, state.applied
