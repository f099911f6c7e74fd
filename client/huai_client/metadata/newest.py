"""The newest commit of an upstream: one small request.

Any web server with static files will do, and any git server.  One of HTTP is asked for static files
first; only if it has none, and at every other URL, git is asked.  The fetch itself is left to
`static_fetch` and `git_fetch`.
"""

from typing import TYPE_CHECKING, NamedTuple

from huai_client.metadata.http import (
    TIMEOUT_SECONDS,
    MetadataUrl,
    NotServedError,
    is_http,
)
from huai_client.metadata.known_heads import KnownHead, KnownHeads
from huai_client.run.deadline import NEVER, Deadline

if TYPE_CHECKING:
    from huai_schema.codec.static_files import Static


class Newest(NamedTuple):
    """The newest commit of an upstream."""

    commit: str
    """Its hex id."""
    found: MetadataUrl
    """Where the upstream is, after redirections."""
    clock: float | None = None
    """What its clock said, seconds since the epoch; None: it did not say."""
    static: "Static | None" = None
    """Its static files; None: there are none, or nothing has changed."""


def find_newest(
    metadata: MetadataUrl,
    *,
    timeout: float = TIMEOUT_SECONDS,
    deadline: Deadline = NEVER,
    heads: KnownHeads | None = None,
    have: str | None = None,
) -> Newest:
    """Return the newest commit, and where to fetch it.

    `UpstreamError` if there is none, `FormatError` for a malformed head of static files.  A
    `timeout` (s) that is longer than what suits so small a question is not made use of.  `heads`
    remembers the head; if it is that of the commit `have`, the answer may be that nothing changed.
    """
    timeout = min(timeout, TIMEOUT_SECONDS)
    if not is_http(metadata.url):
        return _ask_git(metadata, timeout, deadline)
    from huai_client.metadata.static_head import hear_head

    known = heads.get(metadata.address) if heads else None
    try:
        heard = hear_head(
            metadata,
            known if known and known.commit == have else None,
            timeout=timeout,
            deadline=deadline,
        )
    except NotServedError as missing:
        try:
            return _ask_git(metadata, timeout, deadline)
        except NotServedError:
            raise missing from None
    if heads and heard.static:
        heads.set(metadata.address, KnownHead(heard.commit, heard.etag))
    return Newest(heard.commit, heard.found, heard.clock, heard.static)


def _ask_git(metadata: MetadataUrl, timeout: float, deadline: Deadline) -> Newest:
    from huai_client.metadata.git.program import GitProgram  # few upstreams need it

    git = GitProgram(metadata, timeout=timeout, deadline=deadline)
    return Newest(git.newest(), metadata)
