"""One rule of a filter, read as rsync's `parse_rule_tok` reads it.

Pure.  What huai cannot keep is refused, never read as something else.
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
    """A rule that is wrong, or outside of what huai supports."""

    exit_code = ExitCode.CONFIG


class Style(Enum):
    """How much of a text is syntax."""

    RULES = "rules"
    """Every rule begins with what it does: `--filter` and filter files."""
    PREFIXED = "prefixed"
    """Patterns, perhaps after `+ ` or `- `: `--exclude`, `--exclude-from` and their like."""
    BARE = "bare"
    """Patterns: files merged with `.-` or `.+`."""


class RuleContext(NamedTuple):
    """What a text gets from where it stands."""

    place: str
    style: Style = Style.RULES
    include: bool = False
    """What a pattern does where nothing else says so."""
    sides: frozenset[str] = frozenset()
    """`s`, `r` or both, given by a merge rule."""
    depth: int = 0
    """How many files are merged around this one."""


@dataclass(frozen=True, slots=True)
class Clear:
    """Forget all rules so far."""


@dataclass(frozen=True, slots=True)
class MergeFile:
    """Read the file `name` here, in the context given."""

    name: bytes
    context: RuleContext


ParsedRule: TypeAlias = Rule | Clear | MergeFile


def read_rule(text: bytes, context: RuleContext, *, sides: frozenset[str]) -> ParsedRule:
    """The rule that `text`, which is not empty, spells, or `FilterError`.

    `sides` are those of a rule that names none itself.
    """
    _check(text, context)
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
    mark, rest = _mark(text, context)
    if mark == b"!":
        if rest:
            raise _error("nothing may follow '!'", text, context)
        return Clear()
    modifiers = re.split(rb"[ _]", rest, maxsplit=1)[0]
    pattern = rest[len(modifiers) + 1 :]
    letters = _modifiers(modifiers, mark, text, context)
    named = letters & frozenset("sr") | frozenset(_SIDES.get(mark, ""))
    if named and context.sides:
        raise _error("the rule that merges this file has named a side already", text, context)
    named = named or context.sides
    if mark == b".":
        return _merge(pattern, letters, named, context, text)
    negated = "!" in letters
    return _rule(mark in _INCLUDES, pattern, named or sides, context, text, negated=negated)


def _mark(text: bytes, context: RuleContext) -> tuple[bytes, bytes]:
    """What the rule does, and the text after that."""
    long = _LONG.match(text)
    mark, end = (_MARK_OF[long[1]], long.end()) if long else (text[:1], 1)
    if mark not in _MARKS:
        raise _error(
            "no rule begins like this",
            text,
            context,
            hint="write + PATTERN to include, - PATTERN to exclude; see FILTERS.md",
        )
    if mark == b":":
        raise _error(
            "per-directory rules (dir-merge) are not supported",
            text,
            context,
            hint="huai decides before it has any file: put the rules into one place, or merge it",
        )
    return mark, text[end:].removeprefix(b",")


def _modifiers(modifiers: bytes, mark: bytes, text: bytes, context: RuleContext) -> frozenset[str]:
    known = _OF_MERGES if mark == b"." else _OF_RULES
    letters = modifiers.decode("latin-1")
    for letter in letters:
        if letter in _UNSUPPORTED:
            what = _UNSUPPORTED[letter]
            raise _error(f"modifier {letter!r}, which {what}, is not supported", text, context)
        if letter not in known or (letter in "sr" and mark in _SIDES):
            raise _error(f"modifier {letter!r} has no place here", text, context)
    if sum(letters.count(sign) for sign in "-+") > 1:
        raise _error("one of the modifiers '-' and '+' is enough", text, context)
    return frozenset(letters)


def _merge(
    name: bytes, letters: frozenset[str], sides: frozenset[str], context: RuleContext, text: bytes
) -> MergeFile:
    if not name:
        raise _error("the name of a file is missing", text, context)
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
    if not pattern:
        raise _error("a pattern is missing", text, context)
    return Rule(include, pattern, "s" in sides, "r" in sides, negated, context.place)


def _check(text: bytes, context: RuleContext) -> None:
    if b"\0" in text:
        raise _error("a rule holds NUL", text[:200], context)
    if len(text) > PATH_BYTES:
        raise _error(f"a rule of more than {PATH_BYTES} bytes", text[:200], context)


def _error(reason: str, text: bytes, context: RuleContext, *, hint: str = "") -> FilterError:
    return FilterError(
        f"{context.place}: '{show(text)}': {reason}",
        hint=hint or "see FILTERS.md on which rules of rsync huai knows",
    )
