"""What a line of rsync's talk belongs to.

Pure, and loads next to nothing: each poll passes here.
"""

from typing import NamedTuple, TypeAlias

from huai_client.cli.rsync.log_format import Item
from huai_schema.paths import RelPath


class PlanStep(NamedTuple):
    """One step of a plan, as the executor names it."""

    kind: str
    path: RelPath


Items: TypeAlias = dict[PlanStep, list[Item]]
"""What rsync would tell of each step, in the order of the plan."""
