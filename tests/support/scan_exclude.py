"""Names that a scan leaves out: the oracle of the native rules."""

import re
import stat

from huai_native._native import Filter

_TEMPORARY = re.compile(rb"\..+\.[A-Za-z0-9]{6}\Z", re.DOTALL)
_RESERVED = b".~tmp~"
_NOT_OWNER = stat.S_IRWXG | stat.S_IRWXO


def is_reserved(name: bytes) -> bool:
    """Return true if a name is reserved for rsync or huai, whatever it names."""
    return name.lower() == _RESERVED


def is_unfinished(name: bytes, mode: int) -> bool:
    """Return true if a regular file is one of rsync's temporary files."""
    return not mode & _NOT_OWNER and _TEMPORARY.match(name) is not None


def excluding(patterns: tuple[bytes, ...]) -> Filter:
    """The filter of rsync's --exclude, which tests compare with the real rsync."""
    return Filter([(pattern, False, True, True, False) for pattern in patterns])
