"""How one kind of repository is laid out.  Pure."""

from typing import NamedTuple

from huai_schema.codec.publish_rules import StageRule


class Profile(NamedTuple):
    """How one kind of repository is laid out."""

    name: str
    tops: tuple[tuple[str, ...], ...]
    """Lists of markers; where all of one list are, there is the top of a repository."""
    rules: tuple[StageRule, ...]
    """Seen from the top; the common ones come last."""
    signed: tuple[tuple[str, str], ...] = ()
    """Names of files that readers trust by a signature, and what follows them in the name of that;
    an empty text: the signature is in the file."""
