"""What came of a proof: a plain value."""

from typing import NamedTuple

from huai_client.plan.order.order import PackageRepository
from huai_schema.paths import RelPath, show


class Proved(NamedTuple):
    """What came of one repository."""

    repository: PackageRepository
    paths: frozenset[RelPath]
    """Its indices and pointers that the plan would have published."""
    seconds: float
    failure: str
    """Why it is refused; empty: it is not."""

    def refused(self) -> str:
        """A failure, in words."""
        top = show(self.repository.top) if self.repository.top else "the whole tree"
        return (
            f"{self.repository.profile} repository, {top}: {self.failure}; its indices and "
            "pointers stay as they are"
        )
