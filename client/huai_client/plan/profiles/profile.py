"""The layout of one kind of repository.  Pure."""

from typing import NamedTuple

from huai_schema.codec.publish_rules import StageRule


class Profile(NamedTuple):
    """The layout of one kind of repository."""

    name: str
    tops: tuple[tuple[str, ...], ...]
    """Lists of markers; a directory with all markers of one list is the top of a repository."""
    rules: tuple[StageRule, ...]
    """Rules relative to the top; the common ones come last."""
    signed: tuple[tuple[str, str], ...] = ()
    """Names of files that readers trust by a signature, and the suffix of the signature's name;
    an empty suffix: the signature is in the file."""
