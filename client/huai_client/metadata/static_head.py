"""The head of an upstream's static files: one small request, and a smaller one if nothing changed.

Nothing that it says is believed: see `static_fetch`.
"""

from typing import TYPE_CHECKING, NamedTuple

from huai_client.metadata.http import MetadataUrl, NotServedError, Question, UnchangedError, ask
from huai_client.metadata.known_heads import KnownHead
from huai_client.run.deadline import Deadline

if TYPE_CHECKING:
    from huai_schema.codec.static_files import Static

_ADDRESS = "static/head"


class Heard(NamedTuple):
    """What a head says."""

    commit: str
    found: MetadataUrl
    """Where the upstream is, after redirections."""
    clock: float | None
    static: "Static | None"
    """None: nothing changed."""
    etag: str = ""


def hear_head(
    metadata: MetadataUrl, known: KnownHead | None, *, timeout: float, deadline: Deadline
) -> Heard:
    """Ask; with `known` the answer may be that this is what it still says.

    `UpstreamError` for a page that is not a head, `FormatError` for a head that is malformed.
    """
    question = Question(_ADDRESS, unless=known.detail if known else "")
    try:
        with ask(metadata, question, timeout=timeout, deadline=deadline) as answer:
            from huai_schema.codec.static_files import MAGIC, STATIC_BYTES, Static

            body = answer.whole(STATIC_BYTES + 1)
            if not body.startswith(MAGIC):
                raise NotServedError(f"{metadata}/{_ADDRESS}: this is not a head of static files")
            static = Static.decode(body, f"{metadata}/{_ADDRESS}")
            found = metadata
            if answer.url != f"{metadata.address.rstrip('/')}/{_ADDRESS}":
                found = metadata.redirected(answer.url.removesuffix(f"/{_ADDRESS}"))
            commit = static.commits[static.newest]
            return Heard(commit, found, answer.clock, static, answer.etag)
    except UnchangedError as error:
        if known is None:
            raise
        return Heard(known.commit, metadata, error.clock, None)
