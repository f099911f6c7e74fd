r"""One filter rule, and which paths its pattern matches, as rsync's exclude.c has it.

Pure.  A pattern becomes a regular expression over a *subject*: a path with a slash in front,
ended by NUL if it is a directory's.  No path holds NUL, so nothing else can match there.

- without a slash or `**`: the last component
- with a slash in front: the whole path
- with `**`: the path from its start or from after any slash
- with any other slash: as many of the last components as the pattern has
- with a slash at the end: directories only
- `dir/***`: `dir`, if it is a directory, and all below it
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from huai_client.filters.wildmatch import TWO_STARS, expression, glob_tokens, literal_tokens

_MARKS = {
    (True, True): (b"-sr", b"+sr"),
    (True, False): (b"-s", b"+s"),
    (False, True): (b"P", b"R"),
}
"""For (sender, receiver): how an exclude and an include begin.

`-` and `+` alone would mean another thing with `--delete-excluded` than without.
"""
_WILD = re.compile(rb"[*?\[]")
_HEAD = re.compile(rb"[^*?\[\\]*")


@dataclass(frozen=True, slots=True)
class Rule:
    """Includes or excludes what its pattern matches."""

    include: bool
    pattern: bytes
    """As it was written, its slashes included."""
    sender: bool = True
    """Decides what is mirrored."""
    receiver: bool = True
    """Decides what may be deleted here: what an exclude matches is protected."""
    negated: bool = False
    """Matches what the pattern does not."""
    place: str = field(default="", compare=False)
    """Where it was read, for people."""

    @property
    def text(self) -> bytes:
        """The one spelling of this rule; reading it gives an equal rule, wherever it is read."""
        mark = _MARKS[self.sender, self.receiver][self.include]
        return b"%s%s %s" % (mark, b"!" if self.negated else b"", self.pattern)


class FilterPattern(NamedTuple):
    """A pattern as an expression, to be matched with re.DOTALL."""

    by_name: bool
    """Match from the last component on, not from the start of the subject."""
    expression: bytes
    head: bytes = b""
    """What every path that it matches begins with."""


_NOTHING = FilterPattern(by_name=False, expression=b"(?!)")


def subject(path: bytes, *, directory: bool) -> bytes:
    """What patterns are matched with."""
    return b"/%s\0" % path if directory else b"/" + path


def translate(text: bytes) -> FilterPattern:
    """The pattern that `text` spells; there is none that rsync would refuse."""
    directories = len(text) > 1 and text.endswith(b"/")
    glob = text[:-1] if directories else text
    body = glob.removeprefix(b"/")
    # Without a wildcard a backslash is a plain byte.
    tokens = glob_tokens(body) if _WILD.search(glob) else literal_tokens(body)
    if tokens is None:
        return _NOTHING
    slashes, deep = glob.count(b"/"), b"**" in glob
    if not slashes and not deep:
        return FilterPattern(by_name=True, expression=expression(tokens, _end(directories)))
    if glob.startswith(b"/"):
        head = _HEAD.match(body)
        return FilterPattern(
            by_name=False,
            expression=b"/" + _whole(glob, tokens, directories),
            head=head[0] if head else b"",
        )
    if not deep and tokens.count(b"/") != slashes:
        # A slash in a class counts as one, but cannot match.
        return _NOTHING
    start = b"" if glob.startswith(b"**") else b".*/"
    return FilterPattern(by_name=False, expression=start + _whole(glob, tokens, directories))


def _whole(glob: bytes, tokens: list[bytes], directories: bool) -> bytes:
    """`tokens` up to the end of a path, and `dir/***` with what it stands for."""
    if glob.endswith(b"***") and tokens[-2:] == [b"/", TWO_STARS]:
        end = rb"(?:/.*)?\x00\Z" if directories else rb"(?:/.*|\x00)\Z"
        return expression(tokens[:-2], end)
    return expression(tokens, _end(directories))


def _end(directories: bool) -> bytes:
    return rb"\x00\Z" if directories else rb"\x00?\Z"
