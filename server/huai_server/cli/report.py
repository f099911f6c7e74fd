"""The text and the JSON fields in which `huai-server` reports commits, and problems in a tree."""

import os
from collections.abc import Iterator, Sequence
from errno import EACCES, ENOENT, EPERM
from typing import TYPE_CHECKING

from huai_program.disk_hints import DISK_HINTS
from huai_program.humanize import counted
from huai_schema.codec.commits import CommitInfo
from huai_schema.diff.changes import Moved
from huai_schema.paths import RelPath, show
from huai_server.cli.console import Console
from huai_server.commit import remarks
from huai_server.commit.read_limits import TOO_LARGE
from huai_server.commit.remarks import Remark
from huai_server.commit.tree_reader import HOLES
from huai_server.scan import mounts
from huai_server.scan import types as scan
from huai_server.scan.types import Problem

if TYPE_CHECKING:  # only some commands need these
    from huai_schema.diff.diff import Difference
    from huai_server.actions.modules import Committed
    from huai_server.commit.result import CommitResult

_SHOWN = 20
"""The most problems that are named one by one; --json names all."""
_ADVICE = {
    **{os.strerror(number): hint for number, hint in DISK_HINTS.items()},
    os.strerror(EACCES): "make it readable for the user that runs this command, or exclude it",
    os.strerror(EPERM): "make it readable for the user that runs this command, or exclude it",
    os.strerror(
        ENOENT
    ): "commit when the update has ended: it was removed while the commit read it",
    scan.CHANGED: "commit when the update has ended; list files that always change in `volatile`",
    scan.KEEPS_CHANGING: "commit when the update has ended, or exclude files that always change",
    scan.OUT_OF_RANGE: "touch it: times from 1678 to 2262 can be committed; or exclude it",
    scan.TIME: "touch it: times from 1678 to 2262 can be committed",
    TOO_LARGE: "allow more time or a higher rate: each run begins such a file again",
    HOLES: "huai-server digest reads it without delaying commits; or fill its holes "
    "(cp --sparse=never), or exclude it",
    scan.DAMAGED: "replace it by a sound copy with its old time; if new content is intended, "
    "touch the file and commit",
    mounts.NOT_ENTERED: "unmount it; or set one_file_system = false; or commit it as an empty "
    "directory with --accept-mounts",
    mounts.MOUNTED_OVER: "mount the right file system; or commit the present entries with "
    "--accept-mounts",
    mounts.NOT_MOUNTED: "mount it; or commit the present entries with --accept-mounts",
}
_OTHER_ADVICE = "check the file system, and commit again"
_REMARKS = {
    remarks.TEMPORARY: "left out as unfinished files of rsync, by their names and modes; "
    "a complete one is mirrored once group or others have a permission",
    remarks.RESERVED: "left out, named '.~tmp~', where rsync and huai stage; "
    "a pattern in `exclude` ends this line",
    remarks.UNREADABLE: "not readable for others, so an rsync daemon as its default user "
    "cannot send it; `check_readable = false` ends this line",
}


def remark_lines(name: str, commit_remarks: Sequence[Remark]) -> Iterator[str]:
    """Yield a line for each kind of remark, with the number of paths and the first of them."""
    for remark in commit_remarks:
        paths = ", ".join(show(path) or "." for path in remark.paths)
        more = ", ..." if remark.number > len(remark.paths) else ""
        yield f"{name}: {remark.number:,} x {_REMARKS[remark.kind]}: {paths}{more}"


def remark_values(remark: Remark) -> dict[str, object]:
    """Return a remark for JSON."""
    return {
        "kind": remark.kind,
        "count": remark.number,
        "paths": [show(path) for path in remark.paths],
        "meaning": _REMARKS[remark.kind],
    }


def show_problems(console: Console, name: str, problems: Sequence[Problem]) -> None:
    """Print the first problems as errors, the number of the others, and advice for each reason."""
    for path, reason, outcome in problems[:_SHOWN]:
        console.error(f"{show(path) or '.'}: {reason}; {outcome}")
    if len(problems) > _SHOWN:
        console.error(f"and {len(problems) - _SHOWN:,} more; --json names them all")
    for advice in dict.fromkeys(_ADVICE.get(each.reason, _OTHER_ADVICE) for each in problems):
        console.error(f"{name}: {advice}")


def problem_values(problems: Sequence[Problem]) -> list[list[str]]:
    """Return path, reason and outcome of each problem, for JSON."""
    return [[show(path), reason, outcome] for path, reason, outcome in problems]


def difference_line(difference: "Difference") -> str:
    """Return a line about a difference: a path that was added, removed, changed or renamed."""
    if isinstance(difference, Moved):
        return f"{show(difference.old)} -> {show(difference.new)}: renamed"
    if difference.old is None:
        return f"{show(difference.path) or '.'}: added"
    return f"{show(difference.path) or '.'}: {'removed' if difference.new is None else 'changed'}"


def commit_values(name: str, result: "CommitResult", seconds: float) -> dict[str, object]:
    """Return the result of a commit that took so many `seconds`, for JSON."""
    head = result.head
    return {
        "module": name,
        "changed": result.changed,
        "commit": head.commit,
        "tree": head.tree,
        "serial": head.info.serial,
        "totals": totals_values(head.info),
        "counts": result.counts._asdict(),
        "lists": _list_values(result),
        "missed": result.missed,
        "hashed_files": result.hashed_files,
        "hashed_bytes": result.hashed_bytes,
        "problems": problem_values(result.problems),
        "warnings": [remark_values(remark) for remark in result.remarks],
        "seconds": round(seconds, 3),
    }


def totals_values(info: CommitInfo) -> dict[str, int]:
    """Return the totals of a commit, with the number of all entries, for JSON."""
    return {**info.totals._asdict(), "entries": info.totals.entries}


def failure_text(done: "Committed[CommitResult]") -> str:
    """Return why a commit, or an update after it, failed, as one line.

    That is the first problem or failure with the number of others, or the exit code's meaning.
    """
    failures = [failure.message for failure in done.after.failures]
    problems = [f"{show(each.path) or '.'}: {each.reason}" for each in done.result.problems]
    first, *more = [*problems, *failures] or [done.exit_code.meaning]
    return f"{first} (and {len(more):,} more)" if more else first


def commit_line(name: str, result: "CommitResult", seconds: float) -> str:
    """Return the result of a commit that took so many `seconds`, as a line."""
    info = result.head.info
    entries = counted(info.totals.entries, "entry", "entries")
    if not result.changed:
        return f"{name}: nothing changed, still serial {info.serial} ({entries}, {seconds:.1f} s)"
    counts = info.counts
    moved = f", {counts.moved:,} moved along" if counts.moved else ""
    return (
        f"{name}: serial {info.serial}: {counts.added:,} added, {counts.changed:,} changed, "
        f"{counts.removed:,} removed{moved} ({entries}, {seconds:.1f} s)"
    )


def list_lines(name: str, result: "CommitResult") -> Iterator[str]:
    """Yield warnings about lists: entries that they missed, refused or unknown paths, cut logs.

    One says why the whole tree was scanned in spite of a list.
    """
    if result.missed:
        entries = counted(result.missed, "entry differs", "entries differ")
        yield (
            f"{name}: {entries} that no list has named since the last scan of the whole tree: the "
            "lists missed them, or they have changed since the last one"
        )
    listed = result.listed
    if listed is None:
        return
    lists = listed.lists
    if listed.scan_cause:
        yield f"{name}: the whole tree is scanned: {listed.scan_cause}"
    if not lists.paths:
        yield f"{name}: the list names no path"
    elif listed.unknown == lists.paths:
        yield f"{name}: nothing is committed: none of the listed paths exists, or did before"
    if lists.is_cut:
        yield f"{name}: a log ends in the middle of a line; what follows is unknown"
    lines = [show(RelPath(line)) for line in lists.first_refused]
    yield from _some(name, lines, lists.refused, "names no path of the module, and is skipped")
    paths = [show(RelPath(path)) for path in listed.first_unknown]
    yield from _some(name, paths, listed.unknown, "does not exist, and never did: it is skipped")


def _list_values(result: "CommitResult") -> dict[str, object] | None:
    """Return the numbers of listed, refused and unknown paths, for JSON; None without lists."""
    listed = result.listed
    if listed is None:
        return None
    return {
        "paths": listed.lists.paths,
        "refused": listed.lists.refused,
        "unknown": listed.unknown,
        "cut": listed.lists.is_cut,
        "scanned": listed.scan_cause or None,
    }


def _some(name: str, paths: list[str], count: int, remark: str) -> Iterator[str]:
    """Yield a line for each of `paths`, and one that counts the others."""
    for path in paths:
        yield f"{name}: {path}: {remark}"
    if count > len(paths):
        yield f"{name}: and {count - len(paths):,} more"
