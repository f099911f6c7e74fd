"""The parser of rsync's arguments.

Pure.  Rule to keep: arguments that are not fully understood become `Passthrough`, with a reason.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from huai_client.cli.numbers import kibibytes
from huai_client.huai_rsync.log import ITEMIZED, NAMED, unknown_escape
from huai_client.huai_rsync.options import OPTIONS, SHORT, Option, Treatment
from huai_client.huai_rsync.request import (
    FilterOption,
    OutputStyle,
    Passthrough,
    RsyncRequest,
    RsyncSource,
)


class Word(NamedTuple):
    """An option or an operand."""

    name: str
    """The long name of an option; empty for an operand."""
    value: str = ""
    option: Option = Option(Treatment.REFUSED, valued=False)


class UnknownWordError(Exception):
    """The option is not in the table, or its spelling is not supported."""


def words(arguments: Sequence[str]) -> Iterator[Word]:
    """Yield options and operands in order; raises `UnknownWordError` for an unknown option."""
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            yield from (Word("", operand) for operand in rest)
        elif argument.startswith("--"):
            yield _long(argument, rest)
        elif argument.startswith("-") and argument != "-":
            yield from _short(argument, rest)
        else:
            yield Word("", argument)


def _long(argument: str, rest: Iterator[str]) -> Word:
    """Parse a long option, whose value may be the next of `rest`.

    Raises `UnknownWordError` for an unknown option, or a missing value.
    """
    name, equals, value = argument[2:].partition("=")
    if len(name) == len("no-x") and name.startswith("no-"):
        name = f"no-{SHORT.get(name[-1], name[-1])}"
    option = OPTIONS.get(name)
    if option is None or len(name) == 1 or (equals and not option.valued):
        raise UnknownWordError(argument)
    if option.valued and not equals:
        value = _next(argument, rest)
    return Word(name, value, option)


def _short(argument: str, rest: Iterator[str]) -> Iterator[Word]:
    """Parse short options in one word, the last of which may take its value from `rest`.

    Raises `UnknownWordError` for an unknown option, or a missing value.
    """
    letters = argument[1:]
    for number, letter in enumerate(letters, 1):
        name = SHORT.get(letter)
        if name is None:
            raise UnknownWordError(f"-{letter} in {argument}")
        option = OPTIONS[name]
        if not option.valued:
            yield Word(name, "", option)
            continue
        value = letters[number:] or _next(argument, rest)
        if value.startswith("="):
            raise UnknownWordError(argument)
        yield Word(name, value, option)
        return


def _next(argument: str, rest: Iterator[str]) -> str:
    """Take the value of `argument` from `rest`; raises `UnknownWordError` without one."""
    value = next(rest, None)
    if value is None:
        raise UnknownWordError(f"{argument} without a value")
    return value


_ARCHIVE = ("recursive", "links", "times", "owner", "group", "perms")
_LEVELS = {"verbose": 0, "human-readable": 1}
"""The initial values of counted options."""
_NEEDED = ("recursive", "links", "times")
_OF_PERMS = ("executability", "chmod")
"""Options that mean something else without --perms."""
_FILTERS = ("filter", "include", "exclude", "include-from", "exclude-from")
_DELETE = ("delete", "del", "delete-before", "delete-during", "delete-delay", "delete-after")
_NUMBER = re.compile("[0-9]{0,9}")
_VALUES = {
    "max-delete": _NUMBER,
    "timeout": _NUMBER,
    "port": _NUMBER,
    "chmod": re.compile("(?:D0?755,F0?644)?"),
}
"""The supported values; empty for an option that is not given."""
_INFO = re.compile(
    "(?:(name|del|stats|all)|backup|copy|flist|misc|mount|nonreg|progress|remove|skip|symsafe)([0-9]?)",
    re.IGNORECASE,
)
"""The flags of --info of rsync 3.5.0, of which the group is what huai prints too."""
_FORMATS = ("out-format", "log-format", "log-file-format")
_REMOTE = re.compile(r"[^/]*:")


def parse_arguments(arguments: Sequence[str]) -> RsyncRequest | Passthrough:
    """Parse a command line, without the program's name, to a request.

    Returns a `Passthrough` if the real rsync has to run it.
    """
    reading = _Reading()
    try:
        for word in words(arguments):
            reading.add(word)
    except UnknownWordError as unknown:
        operands = tuple(text for text in arguments if not text.startswith("-"))
        return Passthrough(
            f"unknown option: {unknown}",
            operands,
            harmless=reading.harmless,
            deletes=any(text.startswith("--del") for text in arguments),
            quiet=reading.flags.get("quiet", False),
        )
    return reading.result()


@dataclass(slots=True)
class _Reading:
    operands: list[str] = field(default_factory=list)
    flags: dict[str, bool] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    filters: list[FilterOption] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    refused: str = ""
    harmless: bool = False
    levels: dict[str, int] = field(default_factory=lambda: dict(_LEVELS))
    info: dict[str, int] = field(default_factory=dict)
    """The levels of `--info`, which override `-v` and `--stats`."""

    def add(self, word: Word) -> None:
        """Sort a word of the command line into operands, options, or what huai refuses."""
        if not word.name:
            self.operands.append(word.value)
        elif word.option.use is Treatment.MEANT:
            self._mean(word)
        elif word.option.use is Treatment.PASSED:
            self.passed.append(f"--{word.name}" + (f"={word.value}" if word.option.valued else ""))
        elif word.option.use is not Treatment.IGNORED:
            self.harmless |= word.option.use is Treatment.HARMLESS
            self.refused = self.refused or f"--{word.name}"

    def _mean(self, word: Word) -> None:
        """Note the value of an option that huai implements."""
        name = word.name
        if name in _FILTERS:
            self.filters.append(FilterOption(name, word.value))
        elif name == "archive":
            self.flags.update(dict.fromkeys(_ARCHIVE, True))
        elif name in _LEVELS:
            self.levels[name] += 1
        elif name.removeprefix("no-") in _LEVELS:
            self.levels[name.removeprefix("no-")] = 0
        elif name == "info":
            self._inform(word.value)
        elif word.option.valued:
            self.values[name] = word.value
        elif name.removeprefix("no-") in ("max-delete", "timeout", "bwlimit", "contimeout"):
            self.values.pop(name.removeprefix("no-"), None)
        else:
            self.flags[name.removeprefix("no-")] = not name.startswith("no-")

    def _inform(self, flags: str) -> None:
        """Note the levels of name, del and stats in --info; rsync has to run for unknown flags."""
        for flag in flags.split(","):
            match = _INFO.fullmatch(flag)
            if flag.lower() == "none":
                self.info = dict.fromkeys(("name", "del", "stats"), 0)
            elif match is None:
                self.refused = self.refused or f"--info={flag}"
            elif match[1]:
                level, kind = int(match[2] or 1), match[1].lower()
                kinds = ("name", "del", "stats") if kind == "all" else (kind,)
                self.info.update(dict.fromkeys(kinds, level))

    def result(self) -> RsyncRequest | Passthrough:
        """Return the request, or a `Passthrough` with the reason why rsync has to run."""
        dest = self.operands[-1] if self.operands else ""
        remote = not dest or _REMOTE.match(dest) is not None
        targets = () if remote or len(self.operands) < 2 else (dest,)
        reason = self._reason(remote=remote)
        source = None if reason else self._source()
        if source is None:
            ours = "a folder of an rsync daemon, with a slash at the end"
            reason = reason or f"{self.operands[0]} is not {ours}"
            single = len(self.operands) == 2 and not self.refused
            return Passthrough(
                reason,
                targets,
                harmless=self.harmless or not targets or self.flags.get("dry-run", False),
                file=self.operands[0] if single and not self.operands[0].endswith("/") else "",
                deletes=self._deletes,
                quiet=self.flags.get("quiet", False),
            )
        return self._request(source, dest)

    def _reason(self, *, remote: bool) -> str:
        """Return why huai cannot carry this out, or an empty text."""
        if self.refused:
            return self.refused
        if len(self.operands) != 2 or remote:
            return "not one source and one local destination"
        return next(self._reasons(), "")

    def _reasons(self) -> Iterator[str]:
        """Yield missing and unsupported options, those without a value first."""
        yield from (f"without --{name}" for name in _NEEDED if not self.flags.get(name))
        if kibibytes(self.values.get("bwlimit", "0")) is None:
            yield f"--bwlimit={self.values['bwlimit']}"
        for name, expected in _VALUES.items():
            if not expected.fullmatch(self.values.get(name, "")):
                yield f"--{name}={self.values[name]}"
        if not self.flags.get("perms"):
            names = (*self.flags, *self.values)
            yield from (f"--{name} without --perms" for name in _OF_PERMS if name in names)
        if "rsh" in self.values and (self._port or "::" not in self.operands[0]):
            yield "--rsh"
        for name in _FORMATS:
            if escape := unknown_escape(self.values.get(name, "")):
                yield f"--{name}: {escape} is not one of huai's escapes"

    @property
    def _port(self) -> int:
        text = self.values.get("port", "")
        return int(text) if text.isdecimal() else 0

    def _source(self) -> RsyncSource | None:
        """Return the source with its port; None if huai cannot read it or two ports are given."""
        source = RsyncSource.parse(self.operands[0])
        port = self._port
        # A port in the URL overrides --port, so a call with two is left to rsync.
        if source and port and self.operands[0].startswith("rsync://"):
            return None
        return replace(source, port=port) if source and port else source

    def _request(self, source: RsyncSource, dest: str) -> RsyncRequest:
        flags, values = self.flags, self.values
        return RsyncRequest(
            source=source,
            dest=dest,
            delete=self._deletes,
            delete_excluded=flags.get("delete-excluded", False),
            filters=tuple(self.filters),
            max_delete=values.get("max-delete"),
            bwlimit=kibibytes(values["bwlimit"]) if "bwlimit" in values else None,
            timeout=int(values.get("timeout") or 0) or None,
            rsync_options=(*self.passed, *(f"--rsh={each}" for each in self._shell)),
            owner=flags.get("owner", False),
            group=flags.get("group", False),
            numeric_ids=flags.get("numeric-ids", False),
            safe_links=flags.get("safe-links", False),
            perms=flags.get("perms", False),
            plain_modes=bool(values.get("chmod")),
            dry_run=flags.get("dry-run", False),
            style=self._style(),
        )

    @property
    def _shell(self) -> tuple[str, ...]:
        return (self.values["rsh"],) if "rsh" in self.values else ()

    @property
    def _deletes(self) -> bool:
        return any(self.flags.get(name) for name in (*_DELETE, "delete-excluded"))

    def _style(self) -> OutputStyle:
        """Return how output is printed."""
        flags, values, info = self.flags, self.values, self.info
        verbosity = self.levels["verbose"]
        usual = ITEMIZED if flags.get("itemize-changes") else ""
        if not usual and info.get("name", verbosity):
            usual = NAMED
        stats = info.get("stats", 2 if flags.get("stats") else min(verbosity, 1))
        return OutputStyle(
            verbosity=verbosity,
            quiet=flags.get("quiet", False),
            stats=stats > 1,
            totals=stats > 0,
            format=values.get("out-format", values.get("log-format", usual)),
            deletions=info.get("del", verbosity) > 0,
            human=self.levels["human-readable"],
            log=values.get("log-file", ""),
            log_format=values.get("log-file-format", ITEMIZED),
        )
