"""The options of one run of `verify`."""

from typing import NamedTuple

from huai_client.run.deadline import NEVER, Deadline
from huai_schema.paths import ROOT, RelPath


class VerifyRequest(NamedTuple):
    """What is to be verified, and how."""

    content: bool = False
    """Read files too."""
    path: RelPath = ROOT
    """Only this, with what is below it."""
    sample: float | None = None
    """Only this share of the files, from 0 to 1, picked at random."""
    seed: int = 0
    """For `sample`: pick the same files again."""
    deadline: Deadline = NEVER
    """When to stop; a run with a deadline continues the part that an earlier one began."""
    repair: bool = False
    """Begin with the parts in which something differed."""

    @property
    def limited(self) -> bool:
        """Whether it may stop before all is verified."""
        return self.deadline != NEVER
