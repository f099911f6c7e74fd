"""The language of a page: the one that its reader wants, of those that there are."""

from huai_schema.program.words import ENGLISH, LANGUAGES

_HEADER_LENGTH = 256
"""Longer text is not a list of languages: a header may hold anything."""


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
