"""What a run of `verify` is asked for."""

from typing import NamedTuple

from huai_client.deadline import NEVER, Deadline
from huai_schema.paths import ROOT, RelPath


class VerifyRequest(NamedTuple):
    """What is to be verified, and how."""

    content: bool = False
    """Read files too."""
    path: RelPath = ROOT
    """Only this, with what is below it."""
    sample: float | None = None
    """Only so many of the files, from 0 to 1, picked at random."""
    seed: int | None = None
    """For `sample`: pick the same files again."""
    deadline: Deadline = NEVER
    """When to stop; with one, a part that was left in the middle is gone on with."""
    repair: bool = False
    """Begin where something differed last time."""

    @property
    def limited(self) -> bool:
        """Whether it may stop before all is seen."""
        return self.deadline != NEVER
