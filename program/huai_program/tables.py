"""Tables of configuration files as typed values."""

import re
from collections.abc import Collection
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec
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
# Texts, since hardly a run has use for them, and compiling them takes time at each poll.
_TYPE = rf"`({'|'.join(_TYPES)})( \| ({'|'.join(_TYPES)}))*`"
_PLACE = r" - at `(?:key in )?\$\.?((\w*)[^`]*)`$"
PATH = r"^(?:/[^\x00\n]*)?$"
"""An absolute path, or none, as a regular expression."""
_NUMBER = r"Expected `(?:int|float)(?: \| null)?` "
_WORDS = (
    (_NUMBER + r">= (\S+)", r"is less than \1"),
    (_NUMBER + r"<= (\S+)", r"is more than \1"),
    (_NUMBER + r"> (\S+)", r"is not above \1"),
    (rf"Expected `str` matching regex {re.escape(repr(PATH))}", "is not an absolute path"),
    (r"Expected `str` matching regex .*", "does not have the form that it needs"),
    (r"Invalid enum value (.*)", r"\1 is not one of its values"),
)
"""Messages of msgspec as regular expressions, and words for people."""


class Example(NamedTuple):
    """Annotates a field of a table with a right value, which a message about a wrong one shows."""

    text: str
    """The value in TOML."""


def convert(place: str, table: object, kind: type[T], *, see: str = "look at this table") -> T:
    """Return the value of a table; `ConfigError` with the key that is wrong, after `place`.

    `see`: the hint where no example is known.
    """
    check_keys(place, table, kind.__struct_fields__)
    try:
        return msgspec.convert(table, kind, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise _value_error(place, str(error), table, kind, see) from None


def check_keys(place: str, table: object, known: Collection[str]) -> None:
    """Raise `ConfigError` for an unknown key, which is most likely a typing error."""
    if not isinstance(table, dict):
        raise ConfigError(
            f"{place}: this has to be a table", hint="begin it with its name in brackets: [table]"
        )
    for key in table:
        if key not in known:
            raise ConfigError(f"{place}: unknown key {key!r}", hint=closest(key, known))


def example(kind: type[msgspec.Struct], key: str) -> str:
    """Return a line with a right value; empty: none is known."""
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
    """Return what `convert` makes `value` of."""
    made: dict[str, Any] = msgspec.to_builtins(value, enc_hook=str)
    return made


def _decode(kind: type, value: object) -> object:
    """Make what msgspec does not know."""
    if issubclass(kind, Duration | Size):
        return kind.parse(value)
    raise NotImplementedError


def _value_error(
    place: str, reason: str, table: object, kind: type[msgspec.Struct], see: str
) -> ConfigError:
    """Return the error for msgspec's message, which ends with the place in the table."""
    found = re.search(_PLACE, reason)
    path, key, said = (*found.groups(), reason[: found.start()]) if found else ("", "", reason)
    for pattern, words in _WORDS:
        said = re.sub(pattern, words, said, flags=re.DOTALL)
    said = re.sub(_TYPE, _in_words, said)
    missing = re.fullmatch(_MISSING, said)
    if missing and not path:
        path = key = missing[1]
        said = "is missing"
    elif said.startswith(("is ", "does ")):
        said = f"{_shown(table, path)} {said}"
    else:
        said = said[:1].lower() + said[1:]
    line = example(kind, key) if key else ""
    hint = f"for example: {line}" if line else see
    return ConfigError(f"{place}: {path}: {said}" if path else f"{place}: {said}", hint=hint)


def _shown(table: Any, path: str) -> str:
    """The value at `path`, such as `urls[0].rank`, for people: a URL without its login."""
    for name in re.findall(r"\w+", path):
        try:
            table = table[int(name) if isinstance(table, list) else name]
        except (LookupError, TypeError, ValueError):  # below a key of a table
            return "a value"
    return repr(masked(table) if isinstance(table, str) and "://" in table else table)


def _in_words(types: re.Match[str]) -> str:
    return " or ".join(_TYPES[each] for each in types[0].strip("`").split(" | "))
