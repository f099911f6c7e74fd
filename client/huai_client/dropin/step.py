"""What a line of rsync's talk belongs to.

Pure, and loads next to nothing: each poll passes here.
"""

from typing import NamedTuple, TypeAlias

from huai_schema.paths import RelPath


class Step(NamedTuple):
    """One step of a plan, as the executor names it."""

    kind: str
    path: RelPath


Lines: TypeAlias = dict[Step, bytes]
"""What rsync would say of each step, without line ends, in the order of the plan."""
