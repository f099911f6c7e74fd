"""Limits on deletions for single directories, beside the one for the whole tree.

Pure.  There is no limit for a directory unless it is configured: the limit of the whole tree
is always there, and a default for each directory would stop every release that is retired.
A share is exact here, without the least number that `max_delete` allows: who names a directory
means that directory, however small it is.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from huai_client.plan.operations import Remove
from huai_client.plan.summary import DeleteLimitError, TooManyDeletionsError, parse_limit
from huai_schema.errors import FormatError
from huai_schema.paths import ROOT, RelPath, ancestors, rel_path, show

EACH = "/*"
"""Stands for every top-level directory that has no limit of its own."""


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
    """The limits of directories that are named; `DeleteLimitError` if one is not valid."""
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
