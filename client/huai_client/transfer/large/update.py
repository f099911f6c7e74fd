"""The use case: update large files from local blocks and content URLs.

libcurl is loaded only for a content URL of HTTP.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from huai_client.diff.selection import Selection
from huai_client.metadata.block_indices import BlockIndices
from huai_client.metadata.upstream import Upstream
from huai_client.staging import Staging
from huai_client.transfer.fetch import disk_errors
from huai_client.transfer.large.files import LargeFiles, Origins
from huai_client.transfer.large.older import Former
from huai_client.transfer.listener import Listener
from huai_client.transfer.local import Reused, ReusePolicy
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.sources import Sources
from huai_client.transfer.urls import ContentUrl, Transport
from huai_client.tree import View
from huai_schema.entries import File
from huai_schema.paths import RelPath


class Means(NamedTuple):
    """The resources of a run."""

    upstream: Upstream
    urls: Sequence[ContentUrl]
    options: TransferOptions
    policy: ReusePolicy
    former: Selection | None
    """The selection that the last sync left in the tree; None if no file may be trusted."""
    in_place: Callable[[RelPath], bool]
    """Tests which files may be changed in place."""


def update(
    files: Sequence[File], means: Means, view: View, staging: Staging, listener: Listener
) -> tuple[Reused, int]:
    """Make ready what can be made of `files`, which have a block index and are not ready.

    Returns the files that needed no transfer, and the bytes received for others.  Raises
    `DiskFullError` if the disk is full.
    """
    upstream, options = means.upstream, means.options
    indices = BlockIndices(
        upstream.metadata, upstream.deadline, timeout=options.timeout, on_message=listener.retried
    )
    former = None
    if means.former is not None:
        former = Former(means.former, indices, means.policy.until)
    with disk_errors(staging), ExitStack() as stack:
        pieces = None
        if any(url.transport is Transport.HTTP for url in means.urls):
            from huai_client.transfer.large.pieces import Pieces

            sources = Sources(means.urls, options.hosts.health)
            pieces = stack.enter_context(Pieces(sources, options, listener))
        origins = Origins(indices, former, pieces)
        large = LargeFiles(view, staging, origins, means.policy, means.in_place)
        return large.update(files), pieces.received if pieces else 0
