"""The newest commits of modules, read again only when a branch has moved.

Reads in threads.  Rule: memory is bounded, however many commits a module keeps.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from huai_schema.codec.commits import Counts
from huai_server.http.pages.state import Due, next_due
from huai_server.store.repository import Head, Repository

KEPT = 5000
"""The newest commits of a module that have pages: finding an older one would be slow."""
RECENT = 100
"""The commits of each module that are kept in memory."""
DAY_SECONDS = 86400


class Tally(NamedTuple):
    """The changes of the commits of one period."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    """Changed or moved."""
    bytes: int = 0
    """The size of the module at the end of the period."""
    entries: int = 0
    commits: int = 0
    serial: int = 0
    """The serial of the last commit."""
    new_bytes: int = 0
    """The sizes of new files and of those with other content, as far as commits state them."""

    def plus(self, later: "Tally") -> "Tally":
        """Return the sum of the changes, with size and entries of the period `later`."""
        return later._replace(
            added=self.added + later.added,
            removed=self.removed + later.removed,
            changed=self.changed + later.changed,
            commits=self.commits + later.commits,
            new_bytes=self.new_bytes + later.new_bytes,
        )


def tally(head: Head) -> Tally:
    """Return the changes of one commit; none for serial 1, which adds all that there is."""
    counts, totals, serial = head.info.counts, head.info.totals, head.info.serial
    if serial == 1:
        counts = Counts()
    changed = counts.changed + counts.moved
    sizes = totals.bytes, totals.entries
    numbers = (counts.added, counts.removed, changed, *sizes)
    return Tally(*numbers, commits=1, serial=serial, new_bytes=counts.new_bytes or 0)


def tally_periods(commits: Iterable[Head], seconds: int) -> dict[int, Tally]:
    """Return the changes by period of `seconds` since the epoch; `commits` are newest first."""
    periods: dict[int, Tally] = {}
    for head in reversed([*commits]):
        period = head.time // seconds
        periods[period] = periods[period].plus(tally(head)) if period in periods else tally(head)
    return periods


class Days(NamedTuple):
    """The changes by day since the epoch of the `KEPT` newest commits of a module."""

    newest: str
    """The id of the newest commit that is counted."""
    tallies: Mapping[int, Tally]


class Recent(NamedTuple):
    """The newest commits of a module, and what pages compute from them alone."""

    commits: tuple[Head, ...] = ()
    """At most `RECENT`, newest first."""
    due: Due | None = None
    days: Mapping[int, Tally] = MappingProxyType({})
    """Their changes by day since the epoch."""


def read_recent(repository: Repository, _: object) -> tuple[str | None, Recent]:
    """Return the newest commit's id or None, and the newest commits (`BranchCache`)."""
    commits = tuple(islice(repository.history(), RECENT))
    due = next_due([each.time for each in commits])
    recent = Recent(commits, due, tally_periods(commits, DAY_SECONDS))
    return (commits[0].commit if commits else None), recent


def read_days(repository: Repository, former: Days | None) -> tuple[str | None, Days]:
    """Return the newest commit's id or None, and the changes by day (`BranchCache`).

    Only commits newer than `former` are counted; all of them if it is of another history.
    """
    new: list[Head] = []
    for head in islice(repository.history(), KEPT):
        if former is not None and head.commit == former.newest:
            break
        new.append(head)
    else:
        former = None
    tallies = {} if former is None else dict(former.tallies)
    for day, added in tally_periods(new, DAY_SECONDS).items():
        tallies[day] = tallies[day].plus(added) if day in tallies else added
    newest = new[0].commit if new else former.newest if former else ""
    return newest or None, Days(newest, tallies)


def commits_below(repository: Path, serial: int, most: int) -> tuple[Sequence[Head], int | None]:
    """Return at most `most` commits with serials below `serial` (any for 0), newest first.

    The second value is the serial below which the next part is; None for the last part.
    """
    commits = newest_commits(repository, KEPT)
    older = (head for head in commits if not serial or head.info.serial < serial)
    below = [*islice(older, most + 1)]
    return below[:most], below[most - 1].info.serial if len(below) > most else None


def newest_commits(repository: Path, most: int) -> Iterator[Head]:
    """Yield at most `most` of the stored commits, newest first; none before the first one."""
    if repository.exists():
        yield from islice(Repository(repository).history(), most)
