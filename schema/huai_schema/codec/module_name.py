"""The rule of a module's name (FORMAT.md, "Descriptor").

Imports very little: each poll checks the names in the configuration.
"""

import re

from huai_schema.errors import FormatError

_MODULE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"


def check_module(name: str) -> str:
    """Return `name` if it is a valid name of a module; else `FormatError`."""
    if re.fullmatch(_MODULE, name) is None or name.endswith(".git"):
        raise FormatError(
            f"{name[:200]!r} cannot be a module's name"
            " (letters, digits, '.', '_', '-'; not first: '.', '_', '-'; not last: '.git')"
        )
    return name
