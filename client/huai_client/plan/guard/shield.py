"""Keeps a survey, and what `verify` finds, away from what is protected.

Rule to keep: what is left out of the survey never reaches the planner, so no operation can
concern it.
"""

from collections.abc import Iterable, Iterator
from stat import S_ISDIR

from huai_client.diff.candidate import Candidate
from huai_client.diff.candidates import Survey
from huai_client.diff.findings import Difference, Kind
from huai_client.plan.guard.holding import Holding
from huai_client.plan.guard.protect import Protection
from huai_client.tree import View
from huai_schema.entries import Directory, File
from huai_schema.paths import RelPath, sort_key

_TIMES = ("mtime",)


def shield(survey: Survey, protection: Protection, view: View) -> Survey:
    """The survey without protected paths, and without what would take away one that is below.

    A directory that holds one stays, also where a file is wanted in its place.  A hardlink of
    a file that is left out is a file of its own.
    """
    if not protection:
        return survey
    holding = Holding(view, protection)
    left_out: set[RelPath] = set()
    candidates: list[Candidate] = []
    for candidate in sorted(survey.candidates, key=lambda each: sort_key(each.path)):
        if protection.covers_candidate(candidate) or _takes_away(candidate, holding):
            left_out.add(candidate.path)
        else:
            candidates.append(candidate)
    extraneous = [
        path
        for path in survey.extraneous
        if not protection.may_cover(path) and not _holder(path, view, holding)
    ]
    detached = [_detached(each, protection, left_out) for each in candidates]
    return survey._replace(candidates=detached, extraneous=extraneous)


def tolerated(
    differences: Iterable[Difference], protection: Protection, view: View
) -> Iterator[Difference]:
    """What of the differences between a tree and a snapshot counts: not what is protected.

    Nor an extraneous directory that holds it, nor the time of a directory in which it stands,
    which changes whenever its owner writes it anew.
    """
    holding = Holding(view, protection)
    for found in differences:
        if protection and _is_excused(found, protection, view, holding):
            continue
        yield found


def _is_excused(found: Difference, protection: Protection, view: View, holding: Holding) -> bool:
    if protection.may_cover(found.path):
        return True
    if found.kind is Kind.EXTRANEOUS:
        return _holder(found.path, view, holding)
    if found.kind is Kind.DIFFERS and found.attributes == _TIMES:
        return _is_directory(view, found.path) and holding.directly(found.path)
    return False


def _holder(path: RelPath, view: View, holding: Holding) -> bool:
    """Whether a directory stands there that holds something protected."""
    return _is_directory(view, path) and holding.holds(path)


def _takes_away(candidate: Candidate, holding: Holding) -> bool:
    """Whether a directory is to go that holds something protected."""
    goes = isinstance(candidate.have, Directory) and not isinstance(candidate.wanted, Directory)
    return goes and holding.holds(candidate.path)


def _detached(candidate: Candidate, protection: Protection, left_out: set[RelPath]) -> Candidate:
    wanted = candidate.wanted
    if not isinstance(wanted, File) or wanted.link is None:
        return candidate
    alone = protection.detached(wanted)
    if wanted.link in left_out:
        alone = wanted._replace(link=None)
    if alone is wanted:
        return candidate
    # What shares its inode with a protected file must not be changed in place.
    differing = candidate.differing - {"link"} | ({"link"} if candidate.links > 1 else set())
    return candidate._replace(wanted=alone, differing=differing)


def _is_directory(view: View, path: RelPath) -> bool:
    status = view.stat(path)
    return status is not None and S_ISDIR(status.st_mode)
