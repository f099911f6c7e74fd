"""A filter rule.  Pure; the engine decides which paths its pattern matches."""

from dataclasses import dataclass, field

_MARKS = {
    (True, True): (b"-sr", b"+sr"),
    (True, False): (b"-s", b"+s"),
    (False, True): (b"P", b"R"),
}
"""The marks of an exclude and an include, by (sender, receiver).

`-` and `+` alone are not used: `--delete-excluded` changes what they mean.
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that includes or excludes the paths that its pattern matches."""

    include: bool
    pattern: bytes
    """The pattern as written, with its slashes."""
    sender: bool = True
    """True if the rule decides which paths are mirrored."""
    receiver: bool = True
    """True if the rule decides about deletion: paths that it excludes are protected."""
    negated: bool = False
    """True if the rule applies to the paths that the pattern does not match."""
    place: str = field(default="", compare=False)
    """The file and line or option of the rule, for messages."""

    @property
    def text(self) -> bytes:
        """The canonical spelling, which every parser reads as an equal rule."""
        mark = _MARKS[self.sender, self.receiver][self.include]
        return b"%s%s %s" % (mark, b"!" if self.negated else b"", self.pattern)
