"""Publish rules: in which stage a path is published (FORMAT.md, "Publish rules").

Pure text: reads a rule and checks it; matching paths is left to those who publish.
"""

import re
from typing import NamedTuple

from huai_schema.errors import FormatError
from huai_schema.paths import ROOT, RelPath, rel_path

STAGES = ("payload", "indices", "pointers")
"""In the order of publication."""

VOLATILE = "volatile"
"""First word of the rules about files that change without a commit."""

PUBLISH_RULES = 256
"""Rules in one descriptor."""

PUBLISH_RULE_BYTES = 1024
"""One rule, UTF-8."""

VOLATILE_BYTES = 1 << 20
"""A volatile file that is published as it arrived."""

_RULE = re.compile(r"([a-z][a-z0-9-]*) (\S.*)")
_PROFILE = re.compile(r"([a-z][a-z0-9-]*) (/.*)")
_ANY_DEPTH = "**"


class Pattern(NamedTuple):
    """Which paths a rule is about, seen from the top of the subtree that it is for."""

    components: tuple[str, ...]
    """With `?` and `*` inside of a name, and `**` for any number of directories."""
    symlinks: bool
    """Whether it is about symlinks only."""

    @classmethod
    def parse(cls, text: str) -> "Pattern":
        """Read a pattern as FORMAT.md spells it; `FormatError` if it is not one."""
        body = text.removesuffix("@")
        below = body.endswith("/")
        names = body.removeprefix("/").removesuffix("/").split("/")
        if any(name in ("", ".", "..") or (_ANY_DEPTH in name and name != "**") for name in names):
            raise FormatError(f"{text!r} is not a pattern of a publish rule")
        anywhere = () if body.startswith("/") else (_ANY_DEPTH,)
        return cls((*anywhere, *names, *((_ANY_DEPTH,) if below else ())), body != text)


class StageRule(NamedTuple):
    """Files and symlinks that match are published in a stage."""

    stage: int
    """An index into `STAGES`."""
    pattern: Pattern
    text: str
    """As it was written."""


class VolatileRule(NamedTuple):
    """Files that match change without a commit."""

    pattern: Pattern
    text: str


class ProfileRule(NamedTuple):
    """The subtree at a path is laid out as a profile says."""

    profile: str
    path: RelPath
    text: str


Rule = StageRule | ProfileRule | VolatileRule


def parse_rule(text: str) -> Rule | None:
    """Read one rule; None: its first word is one that this version does not know.

    Raises `FormatError`.
    """
    found = _RULE.fullmatch(text)
    if found is None or not text.isprintable() or len(text.encode()) > PUBLISH_RULE_BYTES:
        raise FormatError(f"{text[:200]!r} is not a publish rule: a word, a blank, a pattern")
    word, rest = found.groups()
    if word in STAGES:
        return StageRule(STAGES.index(word), Pattern.parse(rest), text)
    if word == VOLATILE:
        return VolatileRule(Pattern.parse(rest), text)
    return _profile_rule(rest, text) if word == "profile" else None


def check_rules(texts: tuple[str, ...]) -> tuple[str, ...]:
    """`texts` themselves, if all are publish rules and not too many; else `FormatError`."""
    if len(texts) > PUBLISH_RULES:
        raise FormatError(f"more than {PUBLISH_RULES} publish rules")
    for text in texts:
        parse_rule(text)
    return texts


def own_rules(texts: tuple[str, ...]) -> list[Rule]:
    """Rules of one's own configuration, where a word that is not known is a typing error."""
    rules: list[Rule] = []
    for text in check_rules(texts):
        rule = parse_rule(text)
        if rule is None:
            known = ", ".join((*STAGES, VOLATILE, "profile"))
            raise FormatError(f"publish rule {text!r}: begins with none of {known}")
        rules.append(rule)
    return rules


def volatile_rules(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """A publish rule for each pattern of a configuration's `volatile`; `FormatError`."""
    return check_rules(tuple(f"{VOLATILE} {pattern}" for pattern in patterns))


def usable_rules(texts: tuple[str, ...]) -> list[Rule]:
    """Rules of an upstream, without those of a kind that this version does not know."""
    return [rule for text in texts if (rule := parse_rule(text)) is not None]


def _profile_rule(rest: str, text: str) -> ProfileRule:
    found = _PROFILE.fullmatch(rest)
    if found is None:
        raise FormatError(f"{text!r} is not a publish rule: profile, its name, /PATH")
    name, path = found.groups()
    return ProfileRule(name, rel_path(path.strip("/").encode()) if path != "/" else ROOT, text)
