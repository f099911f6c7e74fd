"""The words of one language: English sentences, and what they are in another one.

A catalogue is a TOML table, English to the other language, and English is what stands in the
sources: no build step, and a sentence without a translation is shown in English.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

ENGLISH = "en"
LANGUAGES: Mapping[str, str] = {ENGLISH: "English", "zh": "中文"}
"""Tag and own name of each."""


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
def load_words(package: str, tag: str) -> Words:
    """The words of one of `LANGUAGES`: the file `words/TAG.toml` of a package."""
    if tag == ENGLISH:
        return Words(tag, {})
    source = files(package).joinpath("words", f"{tag}.toml")
    return Words(tag, tomllib.loads(source.read_text(encoding="utf-8")))
