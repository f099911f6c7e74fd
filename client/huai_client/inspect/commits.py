"""The commits in the repository of a module, and their names on the command line.

Reads the repository, which a sync may be writing to, and changes nothing.
"""

import re
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


class LocalCommits:
    """The applied commit, those applied before, and the newest fetched one."""

    def __init__(self, name: str, places: ModulePlaces) -> None:
        """Open the repository of the module `name`, for reading.

        Raises `NotSyncedError` without an applied commit, `StateError` or `DamagedRepositoryError`
        if the state or the repository cannot be read.
        """
        self.state = load(places.state)
        applied = applied_id(self.state, name)
        self.repository = Repository(places.repository, make=False)
        self.applied = self.repository.commit(applied)
        past = dict.fromkeys(self.repository.history())
        past.pop(self.applied.id, None)
        self.past: list[Commit] = [self.repository.commit(each) for each in past]
        """The commits applied before, newest first."""

    @property
    def line(self) -> list[Commit]:
        """The applied commits, newest first."""
        return [self.applied, *self.past]

    @property
    def newest(self) -> Commit:
        """The commit fetched last, by a run or a `plan`; otherwise the applied one.

        If its serial is smaller than the applied one's, the applied one is the newest.
        """
        fetched = self.repository.fetched
        candidates = [self.applied, *([self.repository.commit(fetched)] if fetched else [])]
        return max(candidates, key=lambda commit: commit.info.serial)

    def pair(self, text: str) -> "Pair":
        """Parse `A..B`; without A the applied commit, without B the newest one.

        Without both, the pair is the change of the next sync, or of the last one if the next sync
        would change nothing.  Raises `UnknownCommitError` as `find` does.
        """
        old, _, new = text.partition(_RANGE)
        if not text and self.newest.id == self.applied.id and self.past:
            return Pair(self.past[0], self.applied)
        return Pair(self.find(old or APPLIED), self.find(new or NEWEST))

    def find(self, name: str) -> Commit:
        """Return a commit by serial, id prefix or `applied`, `previous`, `newest`.

        A prefix has 4 digits or more.  Raises `UnknownCommitError` for any other name, or a prefix
        of several.
        """
        commits = {commit.id: commit for commit in (*self.line, self.newest)}
        if name == APPLIED:
            return self.applied
        if name == NEWEST:
            return self.newest
        if name == PREVIOUS and self.past:
            return self.past[0]
        for commit in commits.values():
            if name == str(commit.info.serial):
                return commit
        matching = [commit for commit in commits.values() if commit.id.startswith(name)]
        if len(matching) == 1 and _PREFIX.fullmatch(name):
            return matching[0]
        serials = ", ".join(map(str, sorted({each.info.serial for each in commits.values()})))
        raise UnknownCommitError(
            f"the repository has no commit {name!r}",
            hint=f"it has the serials {serials}; also: applied, previous, "
            "newest, or four digits of an id",
        )


class Pair(NamedTuple):
    """Two commits to compare."""

    old: Commit
    new: Commit
