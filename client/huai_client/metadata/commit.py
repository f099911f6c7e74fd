"""A commit of a module, as a value."""

from typing import NamedTuple

from huai_schema.codec.commits import CommitInfo
from huai_schema.codec.descriptor import Descriptor
from huai_schema.layout.snapshot import Snapshot


class Commit(NamedTuple):
    """A commit of a module, as far as the client has it."""

    id: str
    info: CommitInfo
    time: int
    """Seconds since the epoch."""
    descriptor: Descriptor
    snapshot: Snapshot
    relay_urls: tuple[str, ...] = ()
    """Content URLs of the relay that the commit came from; empty if it came from no relay."""

    @property
    def content_urls(self) -> tuple[str, ...]:
        """The URLs of the content, as the relay or else the upstream states them."""
        return self.relay_urls or self.descriptor.content_urls
