"""The options of one run of `verify`."""

from typing import NamedTuple

from huai_client.run.deadline import NEVER, Deadline
from huai_schema.paths import ROOT, RelPath


class VerifyRequest(NamedTuple):
    """The scope and the method of a run."""

    content: bool = False
    """Read files too."""
    path: RelPath = ROOT
    """The path to verify, with everything below it."""
    sample: float | None = None
    """The share of the files to verify, from 0 to 1, picked at random."""
    seed: int = 0
    """The seed of `sample`, which picks the same files again."""
    deadline: Deadline = NEVER
    """The time to stop; a run with a deadline continues the part that an earlier one began."""
    repair: bool = False
    """Begin with the parts in which something differed."""

    @property
    def limited(self) -> bool:
        """True if the run may stop before all is verified."""
        return self.deadline != NEVER
