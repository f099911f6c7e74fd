"""The words of a language: English sentences with their translations.

A catalogue is a TOML table from English, which is in the sources, to the other language, without a
build step.  A sentence without a translation is shown in English.  That of English has the
sentences that differ where their first value is 1.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

ENGLISH = "en"
LANGUAGES: Mapping[str, str] = {ENGLISH: "English", "zh": "中文"}
"""The languages' own names, by tag."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a language."""

    tag: str
    catalogue: Mapping[str, str]

    def translate(self, text: str, **values: object) -> str:
        """Return a sentence in this language, or in English; `{name}` is replaced by the value."""
        is_one = next(iter(values.values()), None) in {1, "1"}
        translated = self.catalogue.get(text, text) if is_one or self.tag != ENGLISH else text
        return translated.format(**values) if values else translated


@cache
def load_words(package: str, tag: str) -> Words:
    """Load the words of one of `LANGUAGES` from the file `words/TAG.toml` of a package."""
    source = files(package).joinpath("words", f"{tag}.toml")
    return Words(tag, tomllib.loads(source.read_text(encoding="utf-8")))
