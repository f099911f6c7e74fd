"""What a line of rsync's talk belongs to.

Pure, and loads next to nothing: each poll passes here.
"""

from typing import NamedTuple, TypeAlias

from huai_client.cli.rsync.log_format import Item
from huai_schema.paths import RelPath


class Step(NamedTuple):
    """One step of a plan, as the executor names it."""

    kind: str
    path: RelPath


Items: TypeAlias = dict[Step, list[Item]]
"""What rsync would tell of each step, in the order of the plan."""
