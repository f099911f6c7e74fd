"""A parser that collects rules in order, in all forms of rsync's options.

Pure: the caller passes a function that reads merged files.
"""

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from huai_client.filters.grammar import Clear, FilterError, MergeFile, RuleContext, Style, read_rule
from huai_client.filters.rule import Rule
from huai_schema.paths import show

MERGE_DEPTH = 32
"""The depth to which merged files may merge others; rsync's limit."""
_LINE_END = re.compile(rb"\r\n?|\n")
_BOTH_SIDES = frozenset("sr")
_SENDER = frozenset("s")

ReadFile: TypeAlias = Callable[[bytes], bytes]
"""A function that returns the text of a merged file, or raises a `HuaiError`."""


def no_files(name: bytes) -> bytes:
    """Raise `FilterError`: for filters that must not depend on files."""
    raise FilterError(
        f"{show(name)}: files cannot be merged here", hint="write the rules of the file here"
    )


class Parser:
    """The rules read so far; each method reads more, or raises `FilterError`.

    Call the methods in the order of the options on the command line.
    """

    def __init__(self, read_file: ReadFile = no_files, *, delete_excluded: bool = False) -> None:
        """With `delete_excluded`, rules that name no side do not protect from deletion."""
        self._read_file = read_file
        self._sides = _SENDER if delete_excluded else _BOTH_SIDES
        self._rules: list[Rule] = []

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in the order in which they apply."""
        return tuple(self._rules)

    def filter(self, text: bytes, place: str = "--filter") -> None:
        """Read one rule, as of `--filter=TEXT`; an empty text is ignored."""
        self._read(text, RuleContext(place))

    def include(self, text: bytes) -> None:
        """Read one pattern, as of `--include=TEXT`."""
        self._read(text, RuleContext("--include", Style.PREFIXED, include=True))

    def exclude(self, text: bytes) -> None:
        """Read one pattern, as of `--exclude=TEXT`."""
        self._read(text, RuleContext("--exclude", Style.PREFIXED))

    def include_from(self, name: bytes) -> None:
        """Read the patterns of a file, comments aside, as of `--include-from=NAME`."""
        self._read_lines(
            self._read_file(name), RuleContext(show(name), Style.PREFIXED, include=True)
        )

    def exclude_from(self, name: bytes) -> None:
        """Read the patterns of a file, comments aside, as of `--exclude-from=NAME`."""
        self._read_lines(self._read_file(name), RuleContext(show(name), Style.PREFIXED))

    def filter_all(self, rules: Iterable[bytes], place: str) -> None:
        """Read rules as `filter` does; skip blank lines and comments (`#` or `;` in front)."""
        for number, text in enumerate(rules, 1):
            if not text.startswith((b"#", b";")) and text.strip():
                self.filter(text, f"{place} {number}")

    def _read_lines(self, text: bytes, context: RuleContext) -> None:
        """Carry out each line but comments: add a rule, drop all (`!`), or merge a file.

        Errors name the line.
        """
        for number, line in enumerate(_LINE_END.split(text), 1):
            if not line.startswith((b"#", b";")):
                self._read(line, context._replace(place=f"{context.place} line {number}"))

    def _read(self, text: bytes, context: RuleContext) -> None:
        """Add the rule in `text`, drop all rules (`!`), or read the file that it merges."""
        if not text:
            return
        step = read_rule(text, context, sides=self._sides)
        if isinstance(step, Rule):
            self._rules.append(step)
        elif isinstance(step, Clear):
            self._rules.clear()
        else:
            self._merge(step, context)

    def _merge(self, merge: MergeFile, context: RuleContext) -> None:
        """Add the rules of a merged file; raises `FilterError` if unreadable or nested too deep."""
        if merge.context.depth > MERGE_DEPTH:
            raise FilterError(
                f"{context.place}: files are merged more than {MERGE_DEPTH} deep",
                hint=f"check whether {show(merge.name)} merges itself",
            )
        self._read_lines(self._read_file(merge.name), merge.context)
