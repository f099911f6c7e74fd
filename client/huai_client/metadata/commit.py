"""One commit of a module, as a value."""

from typing import NamedTuple

from huai_schema.codec.commits import CommitInfo
from huai_schema.codec.descriptor import Descriptor
from huai_schema.layout.snapshot import Snapshot


class Commit(NamedTuple):
    """One commit of a module, as far as this side has it."""

    id: str
    info: CommitInfo
    time: int
    """Seconds since the epoch."""
    descriptor: Descriptor
    snapshot: Snapshot
    relay_urls: tuple[str, ...] = ()
    """Where the relay that it came from has the content; empty: it came from no relay."""

    @property
    def content_urls(self) -> tuple[str, ...]:
        """Where the upstream says that the content is."""
        return self.relay_urls or self.descriptor.content_urls
