"""A filter: which paths of a module are mirrored, and which are protected from deletion.

`Rules` also holds the policy for modes: filter and modes together define how a tree follows from a
snapshot.

Pure.  The rules of a side are one regular expression.  As in rsync, the first rule that matches
decides, a path that no rule matches is included, and all paths below an excluded directory are
excluded.
"""

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import groupby
from typing import NamedTuple, Self

from huai_client.filters.parser import Parser, ReadFile, no_files
from huai_client.filters.rule import FilterPattern, Rule, subject, translate
from huai_client.modes import Modes, bare_key, split_key
from huai_schema.codec.escaping import escape, unescape
from huai_schema.paths import RelPath, ancestors, parent

_HIGH_BYTE = re.compile(rb"\\x([89a-f][0-9a-f])")
"""In a key: a byte that is not UTF-8; a backslash is spelt `\\x5c`."""
_RECENT = 4096
"""The number of cached directories: most questions concern paths beside or below recent ones."""


class Decision(NamedTuple):
    """The rule that includes or excludes a path."""

    rule: Rule
    path: RelPath
    """The path that the rule matched: the one asked for, or a directory above it."""


class Rules:
    """An ordered list of rules, and a policy for modes; equal if both are equal."""

    def __init__(self, rules: Iterable[Rule] = (), modes: Modes = Modes.EXACT) -> None:
        """`rules` come from a `Parser`, or use `Rules.parse`."""
        self.rules = tuple(rules)
        self.modes = modes
        self._sender = _Side(rule for rule in self.rules if rule.sender)
        self._receiver = _Side(rule for rule in self.rules if rule.receiver)
        self._fates: dict[RelPath, bool] = {}

    @classmethod
    def parse(
        cls, lines: Iterable[bytes], read_file: ReadFile = no_files, *, place: str = "filter rule"
    ) -> Self:
        """Rules in the syntax of rsync's `--filter`, one each; comments and blanks are skipped."""
        parser = Parser(read_file)
        parser.list(lines, place)
        return cls(parser.rules)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rules):
            return False
        return (self.rules, self.modes) == (other.rules, other.modes)

    def __hash__(self) -> int:
        return hash((self.rules, self.modes))

    def __bool__(self) -> bool:
        """Whether there is any rule."""
        return bool(self.rules)

    def key(self) -> str:
        r"""A line for each rule, after one for the modes; equal keys mean equal `Rules`.

        For messages and for the recorded state; bytes that are not UTF-8 become `\xHH`.
        """
        return bare_key(self.modes) + "".join(
            escape(rule.text).decode("utf-8", "backslashreplace") + "\n" for rule in self.rules
        )

    @classmethod
    def from_key(cls, key: str) -> Self:
        """The rules with this `key`; raises `HuaiError` if it is malformed."""
        modes, lines = split_key(key)
        raw = _HIGH_BYTE.sub(lambda found: bytes((int(found[1], 16),)), lines.encode())
        rules = cls.parse(map(unescape, raw.splitlines()), place="rule of the recorded filter")
        return cls(rules.rules, modes)

    def included(self, path: bytes, *, directory: bool) -> bool:
        """Whether `path` is mirrored, if the directories above it are."""
        return not path or not self._sender.excludes(path, directory)

    def reaches(self, path: RelPath, *, directory: bool) -> bool:
        """Whether `path` and all directories above it are included."""
        if directory:
            return self._reaches(path)
        return self.included(path, directory=False) and self._reaches(parent(path))

    def excludes_whole(self, path: RelPath) -> bool:
        """Whether the directory `path` is excluded, and so everything below it."""
        return not self._reaches(path)

    def protected(self, path: bytes, *, directory: bool) -> bool:
        """Whether a rule keeps `path`, which the upstream does not have, from deletion."""
        return bool(path) and self._receiver.excludes(path, directory)

    def why(self, path: RelPath, *, directory: bool) -> Decision | None:
        """The rule that decides about `path`; None: no rule matches it.

        If `path` or a directory above it is excluded, the rule of the uppermost of these; else
        the rule that includes `path` itself.
        """
        for above in reversed(ancestors(path)[:-1]):
            rule = self._sender.decide(above, directory=True)
            if rule is not None and not rule.include:
                return Decision(rule, above)
        rule = self._sender.decide(path, directory=directory) if path else None
        return None if rule is None else Decision(rule, path)

    def alike_below(self, one: bytes, other: bytes) -> bool:
        """Whether the rules decide alike below two directories, for any content.

        Then a directory can be renamed from one to the other as a whole.  False if in doubt.
        """
        return one == other or self._sender.blind_below(one, other)

    def _reaches(self, path: RelPath) -> bool:
        """As `reaches`, for a directory.  Not recursive: the upstream decides about depth."""
        if not self.rules:
            return True
        unknown: list[RelPath] = []
        while path and path not in self._fates:
            unknown.append(path)
            path = RelPath(parent(path))
        fate = self._fates.get(path, True)
        if len(self._fates) + len(unknown) > _RECENT:
            self._fates.clear()
        for each in reversed(unknown):
            fate = fate and self.included(each, directory=True)
            self._fates[each] = fate
        return fate


class _Side:
    """The rules of one side, sender or receiver; compiled when first used."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)
        self._runs = [(keep, [*run]) for keep, run in groupby(self._rules, lambda r: r.include)]
        self._excluding = (False, *(not keep for keep, _ in self._runs))

    @cached_property
    def _match(self) -> Callable[[bytes], re.Match[bytes] | None]:
        """The match function; rules in a row that decide alike share a group: few are faster."""
        expression = b"|".join(b"(%s)" % _any_of(run) for _, run in self._runs)
        return re.compile(expression, re.DOTALL).match

    @cached_property
    def _heads(self) -> set[bytes]:
        patterns = (translate(rule.pattern) for rule in self._rules)
        return {pattern.head for pattern in patterns if not pattern.by_name}

    def excludes(self, path: bytes, directory: bool) -> bool:
        if not self._rules:
            return False
        found = self._match(subject(path, directory=directory))
        return found is not None and self._excluding[found.lastindex or 0]

    def decide(self, path: bytes, *, directory: bool) -> Rule | None:
        text = subject(path, directory=directory)
        matching = (each for each in self._rules if re.match(_any_of([each]), text, re.DOTALL))
        return next(matching, None)

    def blind_below(self, *directories: bytes) -> bool:
        """Whether below `directories` only rules on names, without a path, can match."""
        return not any(
            head.startswith(directory + b"/") or (directory + b"/").startswith(head)
            for directory in directories
            for head in self._heads
        )


def _any_of(rules: Iterable[Rule]) -> bytes:
    """One expression that matches wherever any of `rules` does."""
    pairs = [(rule, translate(rule.pattern)) for rule in rules]
    parts: list[bytes] = []
    for by_name, group in groupby(pairs, key=lambda pair: pair[1].by_name):
        inside = b"|".join(_one(rule, pattern) for rule, pattern in group)
        parts.append(b"(?>.*/)(?:%s)" % inside if by_name else inside)
    return b"|".join(parts)


def _one(rule: Rule, pattern: FilterPattern) -> bytes:
    return b"(?!%s)" % pattern.expression if rule.negated else pattern.expression


EVERYTHING = Rules()
"""No filter."""
