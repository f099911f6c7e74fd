"""One filter rule, as a value.

Pure.
"""

from dataclasses import dataclass, field

_MARKS = {
    (True, True): (b"-sr", b"+sr"),
    (True, False): (b"-s", b"+s"),
    (False, True): (b"P", b"R"),
}
"""For (sender, receiver): how an exclude and an include begin.

`-` and `+` alone would mean another thing with `--delete-excluded` than without.
"""


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
