"""The numbers of files, directories and symlinks of a module: `Number of files` of `--stats`.

Without a filter the commit has the numbers.  With one the selected entries are counted: all of them
the first time, then only the changes since.
"""

from typing import TYPE_CHECKING

from huai_client.huai_rsync.cache import recall
from huai_client.huai_rsync.stats import Kinds
from huai_client.state.paths import ModulePlaces

if TYPE_CHECKING:
    from huai_client.filters import Rules
    from huai_client.plan.prepared import PreparedPlan


def entries_of(prepared: "PreparedPlan", places: ModulePlaces, *, count: bool) -> Kinds:
    """Return the entries of the planned commit; those of a filter only with `count`, or zeros."""
    from huai_client.filters import Rules  # not needed by a poll

    rules = Rules.from_key(prepared.filter)
    if not rules:
        totals = prepared.commit.info.totals
        return Kinds(totals.files, totals.directories, totals.symlinks)
    return _selected(prepared, places, rules) if count else Kinds()


def _selected(prepared: "PreparedPlan", places: ModulePlaces, rules: "Rules") -> Kinds:
    from huai_client.diff.selection import Selection
    from huai_client.diff.selections import diff_selections
    from huai_client.metadata.repository import Repository
    from huai_client.state.state import load
    from huai_schema.diff.changes import Change

    now = Selection(prepared.commit.snapshot, rules)
    state, repository = load(places.state), Repository(places.repository)
    memory = recall(places, state.applied)
    if not memory or not memory.kinds or state.filter != prepared.filter:
        return Kinds.of(now.entries())
    if state.applied is None or not repository.has(state.applied):
        return Kinds.of(now.entries())
    past = Selection(repository.commit(state.applied).snapshot, rules)
    changes = [step for step in diff_selections(past, now) if isinstance(step, Change)]
    added, removed = Kinds.of(step.new for step in changes), Kinds.of(step.old for step in changes)
    counts = zip(memory.entries, added, removed, strict=True)
    return Kinds(*(before + more - fewer for before, more, fewer in counts))
