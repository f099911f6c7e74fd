"""What a plan amounts to, before its first byte is moved.

Pure.
"""

from typing import NamedTuple

from huai_client.modes import Reduced
from huai_client.plan.operations import Plan
from huai_schema.entries import Directory, File, Symlink


class PlanSummary(NamedTuple):
    """Counts of entries, and bytes."""

    fetches: int
    fetch_bytes: int
    links: int
    symlinks: int
    attributes: int
    """Entries whose content is here already, directories included."""
    moves: int
    new_directories: int
    deletions: int
    delayed: int = 0
    """Deletions that will wait."""
    reused: int = 0
    """Files whose content is here already, under another name; not among `fetches`."""
    reused_bytes: int = 0

    @property
    def nothing(self) -> bool:
        """Whether the tree is as it should be."""
        return not any(self)


def summarize(plan: Plan) -> PlanSummary:
    """Add up a plan."""
    files = [file for stage in plan.stages for file in stage.fetches]
    fetches = [file for file in files if file.path not in plan.reuses]
    made = set(plan.make)
    return PlanSummary(
        fetches=len(fetches),
        fetch_bytes=sum(file.size for file in fetches),
        links=sum(len(stage.links) for stage in plan.stages),
        symlinks=sum(len(stage.symlinks) for stage in plan.stages),
        attributes=sum(len(stage.attributes) for stage in plan.stages)
        + sum(directory.path not in made for directory in plan.directories),
        moves=len(plan.moves),
        new_directories=len(made),
        deletions=len(plan.clear) + len(plan.removals),
        reused=len(files) - len(fetches),
        reused_bytes=sum(file.size for file in files if file.path in plan.reuses),
    )


def reduced_modes(plan: Plan) -> list[File | Directory]:
    """What the plan creates or changes and gives a safer mode than the metadata states."""
    files = (file for stage in plan.stages for file in (*stage.fetches, *stage.attributes))
    real = (entry for entry in (*plan.directories, *files) if not isinstance(entry, Symlink))
    return [entry for entry in real if isinstance(entry.mode, Reduced)]
