"""A target of the harness, as a value."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A function that takes bytes from outside."""

    run: Callable[[bytes], object]
    refuses: tuple[type[Exception], ...]
    """How it says no."""
    seeds: Sequence[bytes]
    """Inputs that it takes."""
    words: Sequence[bytes] = ()


class Outcome(tuple[Hashable, ...]):
    """The result of a target, for guidance; of other values only the type counts."""

    __slots__ = ()
