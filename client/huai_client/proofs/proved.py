"""The result of a proof.  Pure."""

from typing import NamedTuple

from huai_client.plan.order import PackageRepository
from huai_schema.paths import RelPath, show


class Proved(NamedTuple):
    """The result for one repository."""

    repository: PackageRepository
    paths: frozenset[RelPath]
    """The indices and pointers that the plan would publish."""
    seconds: float
    failure: str
    """The reason of a refusal, or empty."""

    def refused(self) -> str:
        """Return a line for people that says why the repository's indices are not published."""
        top = show(self.repository.top) if self.repository.top else "the whole tree"
        return (
            f"{self.repository.profile} repository, {top}: {self.failure}; its indices and "
            "pointers stay as they are"
        )
