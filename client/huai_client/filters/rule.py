"""One filter rule.  Pure; which paths its pattern matches is said by the engine."""

from dataclasses import dataclass, field

_MARKS = {
    (True, True): (b"-sr", b"+sr"),
    (True, False): (b"-s", b"+s"),
    (False, True): (b"P", b"R"),
}
"""For (sender, receiver): how an exclude and an include begin.

`-` and `+` alone are not used: `--delete-excluded` changes what they mean.
"""


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
