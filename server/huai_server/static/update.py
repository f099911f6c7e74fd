"""The result of updating static files after a commit: a value, which loads nothing."""

from typing import TYPE_CHECKING, NamedTuple

from huai_schema.errors import HuaiError

if TYPE_CHECKING:
    from huai_server.static.publish import Published


class StaticUpdate(NamedTuple):
    """The result of updating static files after a commit."""

    published: tuple[tuple[str, "Published"], ...] = ()
    """The copies, each with its folder or bucket; the module's own files are not among them."""
    failures: tuple[HuaiError, ...] = ()
    """The failures; the commit was made all the same, and the next one publishes both."""
