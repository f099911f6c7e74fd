"""The split of a command line into options and operands, as popt does it for rsync.

Pure.  Handles the spelling of options, and not their meaning.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from huai_client.huai_rsync.options import OPTIONS, SHORT, Option, Use


class Word(NamedTuple):
    """An option or an operand."""

    name: str
    """The long name of an option; empty for an operand."""
    value: str = ""
    option: Option = Option(Use.REFUSED, valued=False)


class UnknownWordError(Exception):
    """The option is not in the table, or its spelling is not supported."""


def words(arguments: Sequence[str]) -> Iterator[Word]:
    """Yield options and operands in order; raises `UnknownWordError`."""
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
    value = next(rest, None)
    if value is None:
        raise UnknownWordError(f"{argument} without a value")
    return value
