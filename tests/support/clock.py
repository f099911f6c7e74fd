"""A clock that a test sets."""

from dataclasses import dataclass


@dataclass
class Clock:
    """The seconds that its code is told."""

    now: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now
