"""The firewall of one module: its protected paths and the limits of its directories.

Only composes.
"""

from collections.abc import Callable, Iterable

from huai_client.config import Module
from huai_client.diff.candidates import Survey
from huai_client.diff.findings import Difference
from huai_client.diff.selection import Selection
from huai_client.filters import Rules
from huai_client.plan.guard.holding import Holding
from huai_client.plan.guard.limits import check_directories, parse_exceptions
from huai_client.plan.guard.protect import Protection
from huai_client.plan.guard.shield import shield, tolerated
from huai_client.plan.guard.undeletable import Undeletable
from huai_client.plan.operations import Remove
from huai_client.state.delayed_deletion import DelayedDeletion
from huai_client.tree import View
from huai_schema.entries import Entry
from huai_schema.paths import RelPath


class Firewall:
    """What every plan has to pass."""

    def __init__(
        self, module: Module, exceptions: Iterable[str], undeletable: Rules | None = None
    ) -> None:
        """`exceptions` are limits for this run, each DIRECTORY=LIMIT; `undeletable` its rules."""
        self._protection = Protection(module.protect)
        self._undeletable = Undeletable(undeletable)
        self._limits = {**module.max_delete_in, **parse_exceptions(exceptions)}

    def may_move(self, view: View) -> Callable[[RelPath, RelPath], bool]:
        """Says whether a directory may be renamed whole, from here to there."""
        protection, holding = self._protection, Holding(view, self._protection)
        undeletable, staying = self._undeletable, Holding(view, self._undeletable)

        def answer(old: RelPath, new: RelPath) -> bool:
            if undeletable and (undeletable.may_cover(old) or staying.holds(old)):
                return False
            return not protection or (protection.alike(old, new) and not holding.holds(old))

        return answer

    def shielded(self, survey: Survey, view: View) -> Survey:
        """The survey without what is protected, nor the deletion of what may not be deleted."""
        return self._undeletable.spared(shield(survey, self._protection, view), view)

    def without_protected(self, waiting: Iterable[DelayedDeletion]) -> list[DelayedDeletion]:
        """Those of the deletions that wait that may ever be done."""
        kept = (self._protection, self._undeletable)
        return [each for each in waiting if not any(rule.may_cover(each.path) for rule in kept)]

    def entries(self, wanted: Iterable[Entry]) -> Iterable[Entry]:
        """A snapshot's entries as far as they are not protected, in the same order."""
        return self._protection.entries(wanted) if self._protection else wanted

    def tolerated(self, differences: Iterable[Difference], view: View) -> Iterable[Difference]:
        """Those of the differences from the applied snapshot that count."""
        return tolerated(differences, self._protection, view)

    def check(self, removals: Iterable[Remove], former: Selection) -> None:
        """Hold deletions from `former` against the limits of the directories they are in.

        Raises `TooManyDeletionsError`.
        """
        if self._limits:
            check_directories(removals, self._limits, former.entries_below)
