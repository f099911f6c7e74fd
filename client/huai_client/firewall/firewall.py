"""The firewall of one module: its protected paths and the limits of its directories.

Only composes.
"""

from collections.abc import Callable, Iterable

from huai_client.config import Module
from huai_client.filters.selection import Selection
from huai_client.firewall.holding import Holding
from huai_client.firewall.limits import check_directories, parse_exceptions
from huai_client.firewall.protection import Protection
from huai_client.firewall.shield import shield, tolerated
from huai_client.plans.operations import Remove
from huai_client.publishing.patience import Waiting
from huai_client.surveying.survey import Survey
from huai_client.surveying.verify import Difference
from huai_client.tree import View
from huai_schema.entries import Entry
from huai_schema.paths import RelPath


class Firewall:
    """What every plan has to pass."""

    def __init__(self, module: Module, exceptions: Iterable[str]) -> None:
        """`exceptions` are limits for this run, each DIRECTORY=LIMIT."""
        self._protection = Protection(module.protect)
        self._limits = {**module.max_delete_in, **parse_exceptions(exceptions)}

    def may_move(self, view: View) -> Callable[[RelPath, RelPath], bool]:
        """Says whether a directory may be renamed whole, from here to there."""
        protection, holding = self._protection, Holding(view, self._protection)

        def answer(old: RelPath, new: RelPath) -> bool:
            return not protection or (protection.alike(old, new) and not holding.holds(old))

        return answer

    def shielded(self, survey: Survey, view: View) -> Survey:
        """The survey without what is protected."""
        return shield(survey, self._protection, view)

    def without_protected(self, waiting: Iterable[Waiting]) -> list[Waiting]:
        """Those of the deletions that wait that may ever be done."""
        return [each for each in waiting if not self._protection.may_cover(each.path)]

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
