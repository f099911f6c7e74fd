r"""One filter rule, and which paths its pattern matches, as rsync's exclude.c has it.

Pure.  A pattern becomes a regular expression for a *subject*: the path with a slash in front, and
for a directory with NUL at the end, which no path contains.  A pattern matches:

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

`-` and `+` alone are not used: `--delete-excluded` changes what they mean.
"""
_WILD = re.compile(rb"[*?\[]")
_HEAD = re.compile(rb"[^*?\[\\]*")


@dataclass(frozen=True, slots=True)
class Rule:
    """Includes or excludes the paths that its pattern matches."""

    include: bool
    pattern: bytes
    """As written, with its slashes."""
    sender: bool = True
    """Whether the rule decides which paths are mirrored."""
    receiver: bool = True
    """Whether the rule decides which paths may be deleted: those that it excludes may not."""
    negated: bool = False
    """Whether the rule applies to the paths that the pattern does not match."""
    place: str = field(default="", compare=False)
    """Where the rule stands, for messages."""

    @property
    def text(self) -> bytes:
        """The canonical spelling; a parser reads it as an equal rule, whatever its options."""
        mark = _MARKS[self.sender, self.receiver][self.include]
        return b"%s%s %s" % (mark, b"!" if self.negated else b"", self.pattern)


class FilterPattern(NamedTuple):
    """A pattern as an expression, to be matched with re.DOTALL."""

    by_name: bool
    """Whether `expression` is for the last component alone, not for the whole subject."""
    expression: bytes
    head: bytes = b""
    """The beginning that all matching subjects share."""


_NOTHING = FilterPattern(by_name=False, expression=b"(?!)")


def subject(path: bytes, *, directory: bool) -> bytes:
    """The text that patterns are matched with."""
    return b"/%s\0" % path if directory else b"/" + path


def translate(text: bytes) -> FilterPattern:
    """The expression for the pattern `text`; like rsync, it refuses none."""
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
        # A slash in a class counts as a slash of the pattern, but cannot match.
        return _NOTHING
    start = b"" if glob.startswith(b"**") else b".*/"
    return FilterPattern(by_name=False, expression=start + _whole(glob, tokens, directories))


def _whole(glob: bytes, tokens: list[bytes], directories: bool) -> bytes:
    """The expression of `tokens` up to the end of a subject, `dir/***` included."""
    if glob.endswith(b"***") and tokens[-2:] == [b"/", TWO_STARS]:
        end = rb"(?:/.*)?\x00\Z" if directories else rb"(?:/.*|\x00)\Z"
        return expression(tokens[:-2], end)
    return expression(tokens, _end(directories))


def _end(directories: bool) -> bytes:
    return rb"\x00\Z" if directories else rb"\x00?\Z"
