"""Publish rules: in which stage a path is published (FORMAT.md, "Publish rules").

Pure: parses and checks rules; matching paths is left to the publisher.
"""

import re
from typing import NamedTuple

from huai_schema.errors import FormatError
from huai_schema.paths import ROOT, RelPath, rel_path

STAGES = ("payload", "indices", "pointers")
"""The stages in the order of publication."""

VOLATILE = "volatile"
"""The first word of rules for files that change without a commit."""

PUBLISH_RULES = 256
"""The maximal number of rules in one descriptor."""

PUBLISH_RULE_BYTES = 1024
"""The maximal length of one rule in UTF-8."""

VOLATILE_BYTES = 1 << 20
"""The maximal size of a volatile file that is published as it arrived."""

_RULE = r"([a-z][a-z0-9-]*) (\S.*)"
_PROFILE = r"([a-z][a-z0-9-]*) (/.*)"
_ANY_DEPTH = "**"


class Pattern(NamedTuple):
    """A pattern of paths, relative to the top of the subtree that a rule governs."""

    components: tuple[str, ...]
    """Names with `?` and `*` as wildcards; `**` is any number of directories."""
    symlinks: bool
    """True if it matches symlinks only."""

    @classmethod
    def parse(cls, text: str) -> "Pattern":
        """Parse a pattern: `/` first anchors it, `/` last adds all below, `@` last means symlinks.

        Raises `FormatError` if it is malformed.
        """
        body = text.removesuffix("@")
        below = body.endswith("/")
        names = body.removeprefix("/").removesuffix("/").split("/")
        if any(name in ("", ".", "..") or (_ANY_DEPTH in name and name != "**") for name in names):
            raise FormatError(f"{text!r} is not a pattern of a publish rule")
        anywhere = () if body.startswith("/") else (_ANY_DEPTH,)
        return cls((*anywhere, *names, *((_ANY_DEPTH,) if below else ())), body != text)


class StageRule(NamedTuple):
    """A rule that publishes matching files and symlinks in one stage."""

    stage: int
    """An index into `STAGES`."""
    pattern: Pattern
    text: str


class VolatileRule(NamedTuple):
    """A rule for files that change without a commit."""

    pattern: Pattern
    text: str


class ProfileRule(NamedTuple):
    """A rule that assigns a profile to the subtree at a path."""

    profile: str
    path: RelPath
    text: str


Rule = StageRule | ProfileRule | VolatileRule


def parse_rule(text: str) -> Rule | None:
    """Parse one rule; None if this version does not know its first word.

    Raises `FormatError` if the rule is malformed.
    """
    match = re.fullmatch(_RULE, text)
    if match is None or not text.isprintable() or len(text.encode()) > PUBLISH_RULE_BYTES:
        raise FormatError(f"{text[:200]!r} is not a publish rule (a word, a blank, a pattern)")
    word, rest = match.groups()
    if word in STAGES:
        return StageRule(STAGES.index(word), Pattern.parse(rest), text)
    if word == VOLATILE:
        return VolatileRule(Pattern.parse(rest), text)
    return _profile_rule(rest, text) if word == "profile" else None


def check_rules(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return `texts`; raises `FormatError` if they are too many, or a rule is malformed.

    Rules of an unknown kind are allowed.
    """
    if len(texts) > PUBLISH_RULES:
        raise FormatError(f"more than {PUBLISH_RULES} publish rules")
    for text in texts:
        parse_rule(text)
    return texts


def own_rules(texts: tuple[str, ...]) -> list[Rule]:
    """Parse the rules of this program's configuration.

    Raises `FormatError` if they are too many, or one is malformed or of an unknown kind.
    """
    rules: list[Rule] = []
    for text in check_rules(texts):
        rule = parse_rule(text)
        if rule is None:
            words = ", ".join((*STAGES, VOLATILE, "profile"))
            raise FormatError(f"publish rule {text!r} must begin with one of {words}")
        rules.append(rule)
    return rules


def volatile_rules(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the publish rules for patterns of the key `volatile`; `FormatError` if malformed."""
    return check_rules(tuple(f"{VOLATILE} {pattern}" for pattern in patterns))


def usable_rules(texts: tuple[str, ...]) -> list[Rule]:
    """Parse an upstream's rules but those of unknown kinds; `FormatError` if one is malformed."""
    return [rule for text in texts if (rule := parse_rule(text)) is not None]


def _profile_rule(rest: str, text: str) -> ProfileRule:
    """Parse "NAME /PATH"; `FormatError` if it is malformed."""
    match = re.fullmatch(_PROFILE, rest)
    if match is None:
        raise FormatError(f"{text!r} is not a publish rule (profile, its name, /PATH)")
    name, path = match.groups()
    return ProfileRule(name, rel_path(path.strip("/").encode()) if path != "/" else ROOT, text)
