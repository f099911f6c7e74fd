"""A filter: the choice of mirrored paths, and of paths protected from deletion.

`Rules` also holds the policy for modes: filter and modes together define the tree of a snapshot.

Pure.  The engine decides; it has the rules as a table.  As in rsync, the first rule that matches
decides, a path that no rule matches is included, and all paths below an excluded directory are
excluded.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, Self

from huai_client.config.modes import Modes, bare_key
from huai_client.config.settings_record import TreeSettings
from huai_client.filters.parser import Parser, ReadFile, no_files
from huai_client.filters.rule import Rule
from huai_native import _native
from huai_schema.codec.escaping import escape, unescape
from huai_schema.entries import Directory, Entry, File
from huai_schema.paths import RelPath

_HIGH_BYTE = re.compile(rb"\\x([89a-f][0-9a-f])")
"""A byte of a key that is not UTF-8; a backslash is spelt `\\x5c`."""


class Decision(NamedTuple):
    """The rule that includes or excludes a path."""

    rule: Rule
    path: RelPath
    """The path that the rule matched: the requested one, or a directory above it."""


class Rules:
    """An ordered list of rules, and a policy for modes; equal if both are equal."""

    def __init__(self, rules: Iterable[Rule] = (), modes: Modes = Modes.EXACT) -> None:
        """Take `rules` of a `Parser`; `Rules.parse` reads texts."""
        self.rules = tuple(rules)
        self.modes = modes
        self.table = _native.Filter(
            [(r.pattern, r.include, r.sender, r.receiver, r.negated) for r in self.rules]
        )
        """The engine's form of the rules."""

    @classmethod
    def parse(
        cls, lines: Iterable[bytes], read_file: ReadFile = no_files, *, place: str = "filter rule"
    ) -> Self:
        """Parse lines as of rsync's `--filter`; comments and blank lines are skipped.

        `place` names them in messages.  Raises `FilterError` for a malformed rule, or a merged file
        without `read_file`.
        """
        parser = Parser(read_file)
        parser.filter_all(lines, place)
        return cls(parser.rules)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rules):
            return False
        return (self.rules, self.modes) == (other.rules, other.modes)

    def __hash__(self) -> int:
        return hash((self.rules, self.modes))

    def __bool__(self) -> bool:
        """Return True if there is any rule."""
        return bool(self.rules)

    def key(self) -> str:
        r"""Return a line for each rule, after one for the modes; equal keys mean equal `Rules`.

        For messages and for the recorded state; bytes that are not UTF-8 become `\xHH`.
        """
        return bare_key(self.modes) + "".join(
            escape(rule.text).decode("utf-8", "backslashreplace") + "\n" for rule in self.rules
        )

    @classmethod
    def from_key(cls, key: str) -> Self:
        """Return the rules with this `key`, or of the record that ends in it (`tree_settings`).

        Raises `HuaiError` if it is malformed.
        """
        settings = TreeSettings.parse(key)
        raw = _HIGH_BYTE.sub(lambda byte: bytes((int(byte[1], 16),)), settings.rules.encode())
        rules = cls.parse(map(unescape, raw.splitlines()), place="rule of the recorded filter")
        return cls(rules.rules, settings.modes)

    def reaches(self, path: RelPath, *, directory: bool) -> bool:
        """Return True if `path` and all directories above it are included."""
        return self.table.reaches(path, directory=directory)

    def includes(self, entry: Entry) -> bool:
        """Return True if `entry` and all directories above it are included."""
        return self.table.reaches(entry.path, directory=isinstance(entry, Directory))

    def select(self, entry: Entry | None) -> Entry | None:
        """Return `entry` as `detach` does; None without one, or if it is excluded."""
        return self.detach(entry) if entry is not None and self.includes(entry) else None

    def detach(self, entry: Entry) -> Entry:
        """Return `entry`; a hardlink whose leader is excluded becomes a file of its own."""
        if not isinstance(entry, File) or entry.link is None:
            return entry
        included = self.table.reaches(entry.link, directory=False)
        return entry if included else entry._replace(link=None)

    def protects(self, path: bytes, *, directory: bool) -> bool:
        """Return True if a rule protects the extraneous `path` from deletion."""
        return self.table.protects(path, directory=directory)

    def why(self, path: RelPath, *, directory: bool) -> Decision | None:
        """Return the rule that decides about `path`; None if no rule matches it.

        If `path` or a directory above it is excluded, that is the rule of the uppermost of these;
        otherwise the rule that includes `path` itself.
        """
        match = self.table.why(path, directory=directory)
        return None if match is None else Decision(self.rules[match[0]], RelPath(match[1]))

    def alike_below(self, one: bytes, other: bytes) -> bool:
        """Return True if the rules decide alike below two directories, for any content.

        Then a directory can be renamed from one to the other as a whole.  False if in doubt.
        """
        return self.table.is_alike_below(one, other)


EVERYTHING = Rules()
"""The empty filter, which includes everything."""
