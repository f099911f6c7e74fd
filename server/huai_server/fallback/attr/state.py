"""What an attr tree is of: the little that tells a whole one from one whose update was interrupted.

It stands beside the attr tree, and in memory as that does: after a crash of the machine both
are gone.
"""

from pathlib import Path

import msgspec

_VERSION = 2


class AttrState(msgspec.Struct, frozen=True):
    """The state of one module's attr tree."""

    kind: str
    commit: str
    """Hex id of the commit that it is of."""
    tree: str
    """Hex id of that commit's tree."""
    serial: int
    entries: int
    generation: str
    """Name of the folder below `generations`."""
    target: str | None = None
    """Hex id of the commit that an update is taking it to; it may be anything in between."""
    spans: tuple[tuple[int, int], ...] = ()
    """When it was changed by huai: from and to, in nanoseconds.  A directory that was changed at
    any other time was changed by somebody else (`scrub`).  Empty: it cannot be changed."""
    version: int = _VERSION


def load(path: Path) -> AttrState | None:
    """The state; None if there is none, or none that can be used."""
    try:
        state = msgspec.json.decode(path.read_bytes(), type=AttrState)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None
    return state if state.version == _VERSION else None


def save(path: Path, state: AttrState) -> None:
    """Replace the state in one step."""
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(state))
    new.replace(path)
