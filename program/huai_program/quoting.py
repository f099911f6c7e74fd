"""Quotes text from outside for a log, a message or a header: in one short line.

Pure.  Rule: text from a client, an upstream or another program is quoted before it is logged.
"""

from huai_schema.paths import escape_controls

_MOST = 300


def quoted(text: str, most: int = _MOST) -> str:
    """Return `text` with control characters and line ends escaped, cut to `most` characters."""
    text = escape_controls(text[: most + 1])
    return text if len(text) <= most else text[: most - 3] + "..."
