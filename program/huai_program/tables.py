"""Converts tables of configuration files to typed values."""

import re
from collections.abc import Collection
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from huai_program.configuration import ConfigError, closest
from huai_program.durations import Duration
from huai_program.sizes import Size
from huai_program.urls import masked

_MISSING = r"Object missing required field `(\w+)`"
T = TypeVar("T", bound=msgspec.Struct)
_TYPES = {
    "str": "a text in quotes",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list in brackets",
    "object": "a table",
    "null": "nothing",
}
# Not compiled, because few runs need them, and compiling would slow down each poll.
_TYPE = rf"`({'|'.join(_TYPES)})( \| ({'|'.join(_TYPES)}))*`"
_PLACE = r" - at `(?:key in )?\$\.?((\w*)[^`]*)`$"
PATH = r"^(?:/[^\x00\n]*)?$"
"""A regular expression for an absolute path or an empty string."""
_NUMBER = r"Expected `(?:int|float)(?: \| null)?` "
_WORDS = (
    (_NUMBER + r">= (\S+)", r"is less than \1"),
    (_NUMBER + r"<= (\S+)", r"is more than \1"),
    (_NUMBER + r"> (\S+)", r"is not above \1"),
    (rf"Expected `str` matching regex {re.escape(repr(PATH))}", "is not an absolute path"),
    (r"Expected `str` matching regex .*", "does not have the required form"),
    (r"Invalid enum value (.*)", r"\1 is not one of its values"),
)
"""Regular expressions for messages of msgspec, and words for people."""


class Example(Struct, frozen=True):
    """An annotation of a field with a valid value, which errors about the field show."""

    text: str
    """The valid value in TOML."""


def convert(place: str, table: object, kind: type[T], *, see: str = "look at this table") -> T:
    """Convert a table; `ConfigError` with `place` and the key that is wrong.

    `see` is the hint if the key has no example.
    """
    check_keys(place, table, kind.__struct_fields__)
    try:
        return msgspec.convert(table, kind, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise _value_error(place, str(error), table, kind, see) from None


def check_keys(place: str, table: object, allowed: Collection[str]) -> None:
    """Raise `ConfigError`, which names `place`, unless `table` is a table of `allowed` keys."""
    if not isinstance(table, dict):
        raise ConfigError(
            f"{place}: must be a table", hint="begin it with its name in brackets: [table]"
        )
    for key in table:
        if key not in allowed:
            raise ConfigError(f"{place}: unknown key {key!r}", hint=closest(key, allowed))


def example(kind: type[msgspec.Struct], key: str) -> str:
    """Return a TOML line with a valid value of `key`, or an empty text if it has no example.

    The value is the key's `Example`, its literals, or its default if that is a number.
    """
    hint = get_type_hints(kind, include_extras=True).get(key)
    for noted in getattr(hint, "__metadata__", ()):
        if isinstance(noted, Example):
            return f"{key} = {noted.text}"
    if get_origin(hint) is Literal:
        return f"{key} = {' or '.join(map(_json, get_args(hint)))}"
    default = next((each.default for each in fields(kind) if each.name == key), None)
    return f"{key} = {_json(default)}" if isinstance(default, int | float) else ""


def _json(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=int).decode()


def to_toml(value: msgspec.Struct) -> dict[str, Any]:
    """Return the table that `convert` would convert to `value`."""
    table: dict[str, Any] = msgspec.to_builtins(value, enc_hook=str)
    return table


def _decode(kind: type, value: object) -> object:
    """Convert a value to a `Duration` or `Size`, for msgspec; `ValueError` if it is malformed."""
    if issubclass(kind, Duration | Size):
        return kind.parse(value)
    raise NotImplementedError


def _value_error(
    place: str, reason: str, table: object, kind: type[msgspec.Struct], see: str
) -> ConfigError:
    """Return the error for msgspec's message, which ends with the place in the table."""
    at = re.search(_PLACE, reason)
    path, key, message = (*at.groups(), reason[: at.start()]) if at else ("", "", reason)
    for pattern, words in _WORDS:
        message = re.sub(pattern, words, message, flags=re.DOTALL)
    message = re.sub(_TYPE, _in_words, message)
    missing = re.fullmatch(_MISSING, message)
    if missing and not path:
        path = key = missing[1]
        message = "is missing"
    elif message.startswith(("is ", "does ")):
        message = f"{_value_at(table, path)} {message}"
    else:
        message = message[:1].lower() + message[1:]
    line = example(kind, key) if key else ""
    hint = f"for example: {line}" if line else see
    return ConfigError(f"{place}: {path}: {message}" if path else f"{place}: {message}", hint=hint)


def _value_at(table: Any, path: str) -> str:
    """Return the value at `path`, such as `urls[0].rank`, for people: a URL without its login."""
    for name in re.findall(r"\w+", path):
        try:
            table = table[int(name) if isinstance(table, list) else name]
        except (LookupError, TypeError, ValueError):  # below a key of a table
            return "a value"
    return repr(masked(table) if isinstance(table, str) and "://" in table else table)


def _in_words(types: re.Match[str]) -> str:
    return " or ".join(_TYPES[each] for each in types[0].strip("`").split(" | "))
