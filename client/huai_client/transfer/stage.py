"""Bringing the content of wanted files into the staging area: what is here first, then the rest.

Only composes.  What comes for one file is copied for those of equal content; where that
fails, they are transferred like any other.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from huai_client.plan.operations import Reuse
from huai_client.transfer import Outcome
from huai_client.transfer.local import Local, Reused, Trust
from huai_client.transfer.staging import Staging
from huai_client.tree import View
from huai_schema.entries import File
from huai_schema.paths import RelPath


class Brought(NamedTuple):
    """What became of the files of a plan."""

    outcome: Outcome
    reused: Reused


def bring(
    fetches: Sequence[File],
    reuses: dict[RelPath, Reuse],
    view: View,
    staging: Staging,
    trust: Trust,
    transfer: Callable[[Sequence[File]], Outcome],
) -> Brought:
    """Make `fetches` ready; `transfer` is asked for those whose content is not here.

    Raises `StorageError` if there is no room for copies, and what `transfer` raises.
    """
    twins = {path: reuse.source for path, reuse in reuses.items() if reuse.twin}
    later = [file for file in fetches if file.path in twins]
    with Local(view, staging, trust) as local:
        here = [
            file
            for file in fetches
            if file.path in reuses
            and file.path not in twins
            and local.take(file, reuses[file.path])
        ]
        elsewhere = {file.path for file in here} | twins.keys()
        rest = transfer([file for file in fetches if file.path not in elsewhere])
        outcome = _both(Outcome(here, [], [], 0), rest)
        if later:
            first = {file.path: file for file in fetches}
            for file in later:
                local.repeat(file, first[twins[file.path]])
            outcome = _both(outcome, transfer(later))
        return Brought(outcome, local.reused())


def _both(one: Outcome, other: Outcome) -> Outcome:
    return Outcome(
        arrived=one.arrived + other.arrived,
        missing=one.missing + other.missing,
        mismatched=one.mismatched + other.mismatched,
        bytes_received=one.bytes_received + other.bytes_received,
        late=one.late + other.late,
        refused=one.refused + other.refused,
        newer={**one.newer, **other.newer},
        kept=one.kept + other.kept,
    )
