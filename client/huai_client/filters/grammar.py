"""The grammar of one filter rule, as rsync's `parse_rule_tok` reads it.

Pure.  A rule that huai does not support is an error; it is never read as another one.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from huai_client.filters.rule import Rule
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.limits import PATH_BYTES
from huai_schema.paths import show

_LONG = re.compile(rb"(clear|dir-merge|exclude|hide|include|merge|protect|risk|show)(?=[\s_,]|\Z)")
_MARK_OF = {
    b"clear": b"!",
    b"dir-merge": b":",
    b"exclude": b"-",
    b"hide": b"H",
    b"include": b"+",
    b"merge": b".",
    b"protect": b"P",
    b"risk": b"R",
    b"show": b"S",
}
_MARKS = b"!:-H+.PRS"
_INCLUDES = b"+SR"
_SIDES = {b"H": "s", b"S": "s", b"P": "r", b"R": "r"}
_OF_RULES, _OF_MERGES = "!sr", "-+sr"
_UNSUPPORTED = {
    "/": "matches absolute paths",
    "C": "takes CVS's ignore rules",
    "e": "leaves out the merged file itself",
    "n": "keeps rules from being inherited",
    "p": "makes a rule perishable",
    "w": "separates rules by spaces",
    "x": "is for extended attributes",
}


class FilterError(HuaiError):
    """A rule is malformed or not supported."""

    exit_code = ExitCode.CONFIG


class Style(Enum):
    """A syntax of rules: full rules, or patterns with or without a prefix."""

    RULES = "rules"
    """Full rules, such as `- PATTERN`: `--filter` and filter files."""
    PREFIXED = "prefixed"
    """Patterns with an optional `+ ` or `- `: `--exclude`, `--include` and their `-from` files."""
    BARE = "bare"
    """Patterns only: files merged with `.-` or `.+`."""


class RuleContext(NamedTuple):
    """The place of a text, and how its rules are read there."""

    place: str
    style: Style = Style.RULES
    include: bool = False
    """True if a pattern without a prefix includes; otherwise it excludes."""
    sides: frozenset[str] = frozenset()
    """`s`, `r` or both, from the rule that merges this file."""
    depth: int = 0
    """The number of merges that lead to this file."""


@dataclass(frozen=True, slots=True)
class Clear:
    """The rule `!`: drop all rules so far."""


@dataclass(frozen=True, slots=True)
class MergeFile:
    """A merge rule: the rules of the file `name` follow here."""

    name: bytes
    context: RuleContext


ParsedRule: TypeAlias = Rule | Clear | MergeFile


def read_rule(text: bytes, context: RuleContext, *, sides: frozenset[str]) -> ParsedRule:
    """Parse `text`, which must not be empty, to a rule.

    `sides` apply to a rule that names no side.  Raises `FilterError` if it is malformed, or not
    supported.
    """
    _check_bytes(text, context)
    if context.style is Style.RULES:
        return _full(text, context, sides)
    include, pattern = context.include, text
    if context.style is Style.PREFIXED:
        if text == b"!":
            return Clear()
        if text[:2] in (b"- ", b"+ "):
            include, pattern = text.startswith(b"+"), text[2:]
    return _rule(include, pattern, context.sides or sides, context, text)


def _full(text: bytes, context: RuleContext, sides: frozenset[str]) -> ParsedRule:
    """Parse a rule with its mark, modifiers and pattern.

    Raises `FilterError` if it is malformed.
    """
    mark, rest = _mark(text, context)
    if mark == b"!":
        if rest:
            raise _error(
                "nothing may follow '!'", text, context, hint="write ! alone, which drops all rules"
            )
        return Clear()
    modifiers = re.split(rb"[ _]", rest, maxsplit=1)[0]
    pattern = rest[len(modifiers) + 1 :]
    letters = _modifiers(modifiers, mark, text, context)
    named_sides = letters & frozenset("sr") | frozenset(_SIDES.get(mark, ""))
    if named_sides and context.sides:
        raise _error(
            "the rule that merges this file names a side already",
            text,
            context,
            hint="name the side in one of the two places only",
        )
    named_sides = named_sides or context.sides
    if mark == b".":
        return _merge(pattern, letters, named_sides, context, text)
    negated = "!" in letters
    return _rule(mark in _INCLUDES, pattern, named_sides or sides, context, text, negated=negated)


def _mark(text: bytes, context: RuleContext) -> tuple[bytes, bytes]:
    """Parse a rule to the one-letter mark of its action and the text after that.

    Raises `FilterError` for an unknown or unsupported mark.
    """
    long = _LONG.match(text)
    mark, end = (_MARK_OF[long[1]], long.end()) if long else (text[:1], 1)
    if mark not in _MARKS:
        raise _error(
            "this is not the beginning of a rule",
            text,
            context,
            hint="write + PATTERN to include, - PATTERN to exclude; see FILTERS.md",
        )
    if mark == b":":
        raise _error(
            "per-directory rules (dir-merge) are not supported",
            text,
            context,
            hint="put the rules into the filter itself, or merge one file with '. FILE'",
        )
    return mark, text[end:].removeprefix(b",")


def _modifiers(modifiers: bytes, mark: bytes, text: bytes, context: RuleContext) -> frozenset[str]:
    """Return the letters in `modifiers`, the part after the mark of the rule `text`.

    Raises `FilterError` if one is unsupported or unfit.
    """
    allowed = _OF_MERGES if mark == b"." else _OF_RULES
    letters = modifiers.decode("latin-1")
    for letter in letters:
        if letter in _UNSUPPORTED:
            meaning = _UNSUPPORTED[letter]
            raise _error(f"modifier {letter!r}, which {meaning}, is not supported", text, context)
        if letter not in allowed or (letter in "sr" and mark in _SIDES):
            raise _error(f"modifier {letter!r} does not go with this rule", text, context)
    if sum(letters.count(sign) for sign in "-+") > 1:
        raise _error("only one of the modifiers '-' and '+' may be given", text, context)
    return frozenset(letters)


def _merge(
    name: bytes, letters: frozenset[str], sides: frozenset[str], context: RuleContext, text: bytes
) -> MergeFile:
    """Return the file that a rule merges; raises `FilterError` without a name."""
    if not name:
        raise _error("the file name is missing", text, context, hint="write . FILE")
    bare = letters & frozenset("-+")
    inside = RuleContext(
        show(name), Style.BARE if bare else Style.RULES, "+" in bare, sides, context.depth + 1
    )
    return MergeFile(name, inside)


def _rule(
    include: bool,
    pattern: bytes,
    sides: frozenset[str],
    context: RuleContext,
    text: bytes,
    *,
    negated: bool = False,
) -> Rule:
    """Return a rule for `sides`, "s" (sender) and "r" (receiver); `negated`: for other paths.

    Raises `FilterError`, which quotes `text`, without a pattern.
    """
    if not pattern:
        raise _error("the pattern is missing", text, context)
    return Rule(include, pattern, "s" in sides, "r" in sides, negated, context.place)


def _check_bytes(text: bytes, context: RuleContext) -> None:
    """Raise `FilterError` for a rule with a NUL byte, or a too long one."""
    if b"\0" in text:
        raise _error("the rule contains a NUL byte", text[:200], context)
    if len(text) > PATH_BYTES:
        raise _error(f"the rule is longer than {PATH_BYTES} bytes", text[:200], context)


def _error(reason: str, text: bytes, context: RuleContext, *, hint: str = "") -> FilterError:
    return FilterError(
        f"{context.place}: '{show(text)}': {reason}",
        hint=hint or "correct the rule; FILTERS.md lists those of rsync's that huai supports",
    )
