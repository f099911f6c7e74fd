"""How many files, directories and symlinks a module has: `Number of files` of `--stats`.

Without a filter the commit has the numbers.  With one the selected entries are counted: all of them
the first time, then only what has changed since.
"""

from typing import TYPE_CHECKING

from huai_client.huai_rsync.cache import recall
from huai_client.huai_rsync.stats import Kinds
from huai_client.state.paths import ModulePlaces

if TYPE_CHECKING:
    from huai_client.filters import Rules
    from huai_client.plan.prepared import Prepared


def entries_of(prepared: "Prepared", places: ModulePlaces, *, wanted: bool) -> Kinds:
    """Count the entries of the planned commit; zeros where that is work and not `wanted`."""
    from huai_client.filters import Rules  # a poll counts nothing

    rules = Rules.from_key(prepared.filter)
    if not rules:
        totals = prepared.commit.info.totals
        return Kinds(totals.files, totals.directories, totals.symlinks)
    return _selected(prepared, places, rules) if wanted else Kinds()


def _selected(prepared: "Prepared", places: ModulePlaces, rules: "Rules") -> Kinds:
    from huai_client.diff.selection import Selection
    from huai_client.diff.selections import diff_selections
    from huai_client.metadata.repository import Repository
    from huai_client.state.state import load
    from huai_schema.diff.changes import Change

    now = Selection(prepared.commit.snapshot, rules)
    state, repository = load(places.state), Repository(places.repository)
    known = recall(places, state.applied)
    if not known or not known.kinds or state.filter != prepared.filter:
        return Kinds.of(now.entries())
    if state.applied is None or not repository.has(state.applied):
        return Kinds.of(now.entries())
    past = Selection(repository.commit(state.applied).snapshot, rules)
    changes = [each for each in diff_selections(past, now) if isinstance(each, Change)]
    came, went = Kinds.of(each.new for each in changes), Kinds.of(each.old for each in changes)
    counts = zip(known.entries, came, went, strict=True)
    return Kinds(*(before + more - less for before, more, less in counts))
