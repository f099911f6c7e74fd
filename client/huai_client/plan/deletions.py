"""Every limit on deletions: for the whole tree, and for single directories.

Pure.  There is no limit for a directory unless it is configured: the limit of the whole tree is
always there, and a default for each directory would stop every unhold that is retired.  A share of
a directory is exact, without the least number that `max_delete` allows: who names a directory means
that directory, however small it is.  Deletions that were delayed are held against the limits again
when they are due, those of each earlier run by themselves.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from huai_client.diff.selection import Selection
from huai_client.plan.operations import Plan, Remove
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.paths import ROOT, RelPath, ancestors, rel_path, show

EACH = "/*"
"""Stands for every top-level directory that has no limit of its own."""
_LEAST_SHARE = 1000
"""A limit given as a share of the whole tree never stops fewer deletions than this."""


class TooManyDeletionsError(HuaiError):
    """The plan deletes more than the administrator allows."""

    exit_code = ExitCode.MAX_DELETE


class DeleteLimitError(HuaiError):
    """A limit that is neither a count nor a share."""

    exit_code = ExitCode.CONFIG


class DeletionLimits:
    """The limits of one run."""

    def __init__(self, limit: str, directories: Mapping[str, str | int]) -> None:
        """`limit`: `max_delete`.  `directories`: by directory ("/dists", or "/*")."""
        self._limit = limit
        self._directories = directories

    def check(self, plan: Plan, entries: int, former: Selection) -> None:
        """Stop a plan that deletes too much of a tree of `entries` entries, made as `former` says.

        Raises `TooManyDeletionsError`.
        """
        removals = (*plan.clear, *plan.removals)
        check_deletions(len(removals), self._limit, entries)
        self._check_directories(removals, former)

    def check_due(self, runs: Iterable[list[Remove]], entries: int, former: Selection) -> None:
        """Stop deletions that were delayed, if those of one of `runs` are too many by now.

        Raises `TooManyDeletionsError`.
        """
        allowed = allowed_deletions(self._limit, entries)
        for removals in runs:
            count = len(removals)
            if count > allowed:
                raise TooManyDeletionsError(
                    f"{count:,} deletions that were delayed are due, more than the {allowed:,} "
                    f"that max_delete = {self._limit!r} allows; nothing was touched",
                    hint=f"if that is right: --max-delete {count}",
                )
            self._check_directories(removals, former)

    def _check_directories(self, removals: Iterable[Remove], former: Selection) -> None:
        if self._directories:
            check_directories(removals, self._directories, former.entries_below)


def check_deletions(deletions: int, limit: str, entries: int) -> None:
    """Stop so many deletions if they are more than `limit` of a tree that had `entries` entries.

    `limit` is a count, or a share such as "10%".  Raises `TooManyDeletionsError`.
    """
    allowed = allowed_deletions(limit, entries)
    if deletions > allowed:
        raise TooManyDeletionsError(
            f"{deletions:,} of {entries:,} entries would be deleted, more than the "
            f"{allowed:,} that max_delete = {limit!r} allows; nothing was touched",
            hint=f"if that is right: --max-delete {deletions}",
        )


def allowed_deletions(limit: str, entries: int) -> int:
    """How many deletions `limit` allows in a tree of `entries` entries."""
    number, is_share = parse_limit(limit)
    return max(_LEAST_SHARE, entries * number // 100) if is_share else number


def parse_limit(limit: str) -> tuple[int, bool]:
    """A limit as a number, and whether it is a share, in percent."""
    number = limit.removesuffix("%")
    if not number.isascii() or not number.isdigit():
        raise DeleteLimitError(
            f"max_delete: {limit!r} is neither a count nor a share", hint="for example 5000 or 10%"
        )
    return int(number), number != limit


def check_directories(
    removals: Iterable[Remove],
    limits: Mapping[str, str | int],
    entries_in: Callable[[RelPath], Iterable[object]],
) -> None:
    """Stop a plan that deletes more in a directory than its limit allows.

    `limits`: by directory ("/dists", or "/*"), a count or a share such as "10%".  `entries_in`
    gives what the tree had in a directory, itself included; no more of it is taken than ten
    times what is deleted there at a limit of 10%, and so on.  Raises `TooManyDeletionsError`.
    """
    known = check_limits(limits)
    each = str(limits[EACH]) if EACH in limits else None
    for path, count in _counts(removals, known, each is not None).items():
        limit = known.get(path, each or "")
        before = _exceeded(count, limit, entries_in(path))
        if before is not None:
            raise TooManyDeletionsError(
                f"{count:,} {before} in /{show(path)} would be deleted, more than "
                f"max_delete_in = {limit!r} allows there; nothing was touched",
                hint=f"if that is right: --max-delete-in /{show(path)}={count}",
            )


def check_limits(limits: Mapping[str, str | int]) -> dict[RelPath, str]:
    """The limits of directories that are named; `DeleteLimitError` if one is none."""
    for limit in limits.values():
        parse_limit(str(limit))
    return {_directory(key): str(limit) for key, limit in limits.items() if key != EACH}


def parse_exceptions(texts: Iterable[str]) -> dict[str, str | int]:
    """Limits for one run, each spelt DIRECTORY=LIMIT."""
    found: dict[str, str | int] = {}
    for text in texts:
        directory, equals, limit = text.rpartition("=")
        if not equals:
            raise DeleteLimitError(
                f"--max-delete-in {text!r} is no DIRECTORY=LIMIT", hint="for example /dists=5000"
            )
        parse_limit(limit)
        found[EACH if directory == EACH else f"/{show(_directory(directory))}"] = limit
    return found


def _counts(
    removals: Iterable[Remove], known: Mapping[RelPath, str], every_top: bool
) -> Counter[RelPath]:
    counts: Counter[RelPath] = Counter()
    for item in removals:
        above = [path for path in ancestors(item.path) if path != ROOT]
        around = [item.path, *above] if item.directory else above
        limited = {path for path in around if path in known}
        if every_top and around:
            limited.add(around[-1])
        counts.update(limited)
    return counts


def _exceeded(count: int, limit: str, entries: Iterable[object]) -> str | None:
    """What `count` is a number of, in words, if so many deletions are too many."""
    number, is_share = parse_limit(limit)
    if not is_share:
        return None if count <= number else "entries"
    if number == 0:
        return "entries"
    enough = -(-count * 100 // number)
    there = sum(1 for _ in islice(entries, enough))
    return None if there >= enough else f"of {there:,} entries"


def _directory(text: str) -> RelPath:
    try:
        path = rel_path(text.strip("/").encode("utf-8", "surrogateescape"))
    except FormatError as error:
        raise DeleteLimitError(
            f"max_delete_in: {text!r}: {error.reason}", hint='for example "/dists"'
        ) from error
    if path == ROOT:
        raise DeleteLimitError(
            f"max_delete_in: {text!r} is the whole tree", hint="its limit is max_delete"
        )
    return path
