"""The languages of the pages: which one a reader gets, and its words.

A catalogue is a TOML table, English to the other language, and English is what stands in the
templates: no build step, and a sentence without a translation is shown in English.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

ENGLISH = "en"
LANGUAGES: Mapping[str, str] = {ENGLISH: "English", "zh": "中文"}
"""Tag and own name of each."""
_HEADER_LENGTH = 256
"""Longer text is not a list of languages: a header may hold anything."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one language."""

    tag: str
    catalogue: Mapping[str, str]

    def say(self, text: str, **values: object) -> str:
        """An English sentence in this language; `{name}` in it stands for the value."""
        said = self.catalogue.get(text, text)
        return said.format(**values) if values else said


@cache
def words_of(tag: str) -> Words:
    """The words of one of `LANGUAGES`."""
    if tag == ENGLISH:
        return Words(tag, {})
    source = files(__package__).joinpath("words", f"{tag}.toml")
    return Words(tag, tomllib.loads(source.read_text(encoding="utf-8")))


def preferred(header: str | None) -> str:
    """The language that an Accept-Language header wants most (RFC 9110, section 12.5.4)."""
    best, weight = ENGLISH, 0.0
    for part in (header or "")[:_HEADER_LENGTH].split(","):
        tag, _, parameter = part.strip().partition(";")
        asked = _weight(parameter)
        main = tag.strip().lower().partition("-")[0]
        if main in LANGUAGES and asked > weight:
            best, weight = main, asked
    return best


def _weight(parameter: str) -> float:
    name, _, value = parameter.strip().partition("=")
    if not name:
        return 1.0
    try:
        return float(value) if name.strip() == "q" else 0.0
    except ValueError:
        return 0.0
