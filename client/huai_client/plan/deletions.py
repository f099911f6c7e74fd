"""The limits on deletions: for the whole tree (`max_delete`), for directories (`max_delete_in`).

Pure.  The whole tree always has a limit, a directory only where one is configured: with a default
for each directory, a sync would stop whenever a suite is retired.  A share of the whole tree allows
at least 1000 deletions; a share of a directory is exact, because small directories are listed on
purpose.  Delayed deletions are checked again when they are due, for each run separately.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from huai_client.diff.candidate import Remove
from huai_client.diff.selection import Selection
from huai_client.plan.operations import Plan
from huai_schema.entries import Directory
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.paths import ROOT, RelPath, ancestors, rel_path, show

EACH = "/*"
"""The key of `max_delete_in` for every top-level directory without a limit of its own."""
_LEAST_SHARE = 1000
"""The least number of deletions that a share of the whole tree allows."""


class TooManyDeletionsError(HuaiError):
    """A plan that deletes more than the administrator allows."""

    exit_code = ExitCode.MAX_DELETE


class DeleteLimitError(HuaiError):
    """A limit that is neither a count nor a share."""

    exit_code = ExitCode.CONFIG


class DeletionLimits:
    """The limits of one run on deletions, in the whole tree and in single directories."""

    def __init__(self, limit: str, directories: Mapping[str, str | int]) -> None:
        """`limit`: `max_delete`.  `directories`: by directory ("/dists", or "/*")."""
        self._limit = limit
        self._directories = directories

    def check(self, plan: Plan, entries: int, former: Selection) -> None:
        """Raise `TooManyDeletionsError` if `plan` exceeds a limit.

        The tree has `entries` entries, those of `former`.  In a renamed directory each entry counts
        as deleted, because readers lose its old name.
        """
        renamed = (entry for move in plan.moves for entry in former.entries_below(move.old))
        lost_names = (Remove(each.path, isinstance(each, Directory)) for each in renamed)
        removals = (*plan.clear, *plan.removals, *lost_names)
        check_deletions(len(removals), self._limit, entries)
        self._check_directories(removals, former)

    def check_due(self, runs: Iterable[list[Remove]], entries: int, former: Selection) -> None:
        """Raise `TooManyDeletionsError` if the due deletions of one of `runs` exceed a limit now.

        `runs`: the delayed deletions, by the run that delayed them.
        """
        allowed = allowed_deletions(self._limit, entries)
        for removals in runs:
            count = len(removals)
            if count > allowed:
                raise TooManyDeletionsError(
                    f"{count:,} delayed deletions are due, more than the {allowed:,} "
                    f"that max_delete = {self._limit!r} allows; nothing was touched",
                    hint=f"to delete them, run again with --max-delete {count}",
                )
            self._check_directories(removals, former)

    def missing(self, *trees: Selection) -> list[RelPath]:
        """Return the directories with a limit that no snapshot of `trees` has, filters aside."""
        return [
            path
            for path in parse_limits(self._directories)
            if all(tree.snapshot.directory(path) is None for tree in trees)
        ]

    def _check_directories(self, removals: Iterable[Remove], former: Selection) -> None:
        if self._directories:
            check_directories(removals, self._directories, former.entries_below)


def check_deletions(deletions: int, limit: str, entries: int) -> None:
    """Raise `TooManyDeletionsError` if `limit` does not allow so many deletions.

    `limit` is a count, or a share of the `entries` entries of the tree, such as "10%".
    """
    allowed = allowed_deletions(limit, entries)
    if deletions > allowed:
        raise TooManyDeletionsError(
            f"{deletions:,} of {entries:,} entries would be deleted, more than the "
            f"{allowed:,} that max_delete = {limit!r} allows; nothing was touched",
            hint=f"to delete them, run again with --max-delete {deletions}",
        )


def allowed_deletions(limit: str, entries: int) -> int:
    """Return the allowed deletions; a share of `entries` allows at least 1000.

    Raises `DeleteLimitError` for a malformed limit.
    """
    number, is_share = parse_limit(limit)
    return max(_LEAST_SHARE, entries * number // 100) if is_share else number


def parse_limit(limit: str) -> tuple[int, bool]:
    """Parse a limit to a number, and True if it is a percentage.

    Raises `DeleteLimitError` for a malformed one.
    """
    number = limit.removesuffix("%")
    if not number.isascii() or not number.isdigit():
        raise DeleteLimitError(
            f"{limit!r} is neither a count nor a share of deletions",
            hint="write a number or a percentage, such as 5000 or 10%",
        )
    return int(number), number != limit


def check_directories(
    removals: Iterable[Remove],
    limits: Mapping[str, str | int],
    entries_in: Callable[[RelPath], Iterable[object]],
) -> None:
    """Raise `TooManyDeletionsError` if a directory loses more than its limit allows.

    `limits`: by directory ("/dists", or "/*"), a count or a share such as "10%"; `DeleteLimitError`
    for a malformed one.  `entries_in` yields the former entries of a directory, itself included.
    Only as many are read as decide: at a limit of 10%, ten times the number of deletions.
    """
    by_path = parse_limits(limits)
    top_limit = str(limits[EACH]) if EACH in limits else None
    for path, count in _counts(removals, by_path, top_limit is not None).items():
        limit = by_path.get(path, top_limit or "")
        before = _exceeded(count, limit, entries_in(path))
        if before is not None:
            raise TooManyDeletionsError(
                f"{count:,} {before} in /{show(path)} would be deleted, more than "
                f"max_delete_in = {limit!r} allows there; nothing was touched",
                hint=f"to delete them, run again with --max-delete-in /{show(path)}={count}",
            )


def parse_limits(limits: Mapping[str, str | int]) -> dict[RelPath, str]:
    """Parse the keys of `limits` to paths, and leave out "/*".

    Raises `DeleteLimitError` for a malformed key or limit, that of "/*" included.
    """
    for limit in limits.values():
        parse_limit(str(limit))
    return {_directory(key): str(limit) for key, limit in limits.items() if key != EACH}


def parse_exceptions(texts: Iterable[str]) -> dict[str, str | int]:
    """Parse the limits of one run, each DIRECTORY=LIMIT, to limits by directory.

    Raises `DeleteLimitError` for a malformed one.
    """
    exceptions: dict[str, str | int] = {}
    for text in texts:
        directory, equals, limit = text.rpartition("=")
        if not equals:
            raise DeleteLimitError(
                f"--max-delete-in {text!r} is not DIRECTORY=LIMIT",
                hint="write for example --max-delete-in /dists=5000",
            )
        parse_limit(limit)
        exceptions[EACH if directory == EACH else f"/{show(_directory(directory))}"] = limit
    return exceptions


def _counts(
    removals: Iterable[Remove], limits: Mapping[RelPath, str], every_top: bool
) -> Counter[RelPath]:
    """Count the removals in each directory of `limits`; with `every_top` in each top one too."""
    counts: Counter[RelPath] = Counter()
    for item in removals:
        above = [path for path in ancestors(item.path) if path != ROOT]
        around = [item.path, *above] if item.directory else above
        limited = {path for path in around if path in limits}
        if every_top and around:
            limited.add(around[-1])
        counts.update(limited)
    return counts


def _exceeded(count: int, limit: str, entries: Iterable[object]) -> str | None:
    """Return None if `limit` allows `count` deletions in a directory, else words for the error.

    The words are "entries", or "of N entries" for a share: at most as many `entries` are read as
    decide.
    """
    number, is_share = parse_limit(limit)
    if not is_share:
        return None if count <= number else "entries"
    if number == 0:
        return "entries"
    enough = -(-count * 100 // number)
    before = sum(1 for _ in islice(entries, enough))
    return None if before >= enough else f"of {before:,} entries"


def _directory(text: str) -> RelPath:
    """Parse a key of `max_delete_in` to a path.

    Raises `DeleteLimitError` if it is not a directory below the top.
    """
    try:
        path = rel_path(text.strip("/").encode("utf-8", "surrogateescape"))
    except FormatError as error:
        raise DeleteLimitError(
            f"max_delete_in: {text!r}: {error.reason}",
            hint='write a directory of the module, such as "/dists"',
        ) from error
    if path == ROOT:
        raise DeleteLimitError(
            f"max_delete_in: {text!r} is the whole tree", hint="set max_delete for the whole tree"
        )
    return path
