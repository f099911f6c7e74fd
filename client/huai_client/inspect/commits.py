"""The commits in the repository of a module, and the names by which people ask for them.

Reads the repository, which a sync may be writing to, and changes nothing.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from huai_client.metadata.commit import Commit
from huai_client.metadata.repository import Repository
from huai_client.state.paths import ModulePlaces
from huai_client.state.state import applied_id, load
from huai_schema.errors import ExitCode, HuaiError

APPLIED, PREVIOUS, NEWEST = "applied", "previous", "newest"
_PREFIX = re.compile("[0-9a-f]{4,40}")
_RANGE = ".."


class UnknownCommitError(HuaiError):
    """No commit in the repository has that name."""

    exit_code = ExitCode.USAGE


class Commits:
    """The applied commit, those applied before, and the newest one that was fetched."""

    def __init__(self, name: str, places: ModulePlaces) -> None:
        """`NotSyncedError` if the module was never synced to its end."""
        self.state = load(places.state)
        applied = applied_id(self.state, name)
        self.repository = Repository(places.repository, make=False)
        self.applied = self.repository.commit(applied)
        past = dict.fromkeys(self.repository.history())
        past.pop(self.applied.id, None)
        self.past: list[Commit] = [self.repository.commit(each) for each in past]
        """Applied before, newest first."""

    @property
    def line(self) -> list[Commit]:
        """The commits that were applied, newest first."""
        return [self.applied, *self.past]

    @property
    def newest(self) -> Commit:
        """The commit that was fetched last, by a run or a `plan`; else the applied one.

        If its serial is smaller than the applied one's, the applied one is the newest.
        """
        fetched = self.repository.fetched
        candidates = [self.applied, *([self.repository.commit(fetched)] if fetched else [])]
        return max(candidates, key=lambda commit: commit.info.serial)

    def pair(self, text: str) -> "Pair":
        """The commits of `A..B`; without A the applied commit, without B the newest one.

        Without both: what the next sync would change; if it would change nothing, what the last one
        changed.
        """
        old, _, new = text.partition(_RANGE)
        if not text and self.newest.id == self.applied.id and self.past:
            return Pair(self.past[0], self.applied)
        return Pair(self.named(old or APPLIED), self.named(new or NEWEST))

    def named(self, name: str) -> Commit:
        """The commit with this serial or beginning of an id, or `applied`, `previous`, `newest`."""
        here = {each.id: each for each in (*self.line, self.newest)}
        if name == APPLIED:
            return self.applied
        if name == NEWEST:
            return self.newest
        if name == PREVIOUS and self.past:
            return self.past[0]
        for each in here.values():
            if name == str(each.info.serial):
                return each
        found = [each for each in here.values() if each.id.startswith(name)]
        if len(found) == 1 and _PREFIX.fullmatch(name):
            return found[0]
        raise UnknownCommitError(
            f"no commit {name!r} is here",
            hint=f"here are the serials {_serials(here.values())}; also: applied, previous, "
            "newest, or four digits of an id",
        )


class Pair(NamedTuple):
    """Two commits that are compared."""

    old: Commit
    new: Commit


def _serials(commits: Iterable[Commit]) -> str:
    return ", ".join(str(number) for number in sorted({each.info.serial for each in commits}))
