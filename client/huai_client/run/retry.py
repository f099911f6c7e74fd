"""Retries after transient errors, with pauses that double, and jitter."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

T = TypeVar("T")


class Backoff(Struct, frozen=True):
    """The number and spacing of retries."""

    retries: int
    """The number of attempts after the first."""
    first: float
    """The pause before the first retry in seconds, without jitter."""
    longest: float
    """The longest pause in seconds, without jitter."""


def retry(
    action: Callable[[], T],
    passing: type[Exception],
    backoff: Backoff,
    sleep: Callable[[float], None],
) -> T:
    """Call `action` until it does not raise a `passing` error; returns its result.

    Raises the last error when the retries are used up, any other one at once.  If an error has a
    `retry_after` (s), the pause is added to it, so that clients do not return together.  `sleep`
    waits for so many seconds, and may raise to end the wait.
    """
    for count in range(backoff.retries):
        try:
            return action()
        except passing as error:
            import random  # takes long to load, and nearly every request succeeds at once

            usual = min(backoff.longest, backoff.first * 2**count)
            jitter = random.uniform(0, backoff.first)  # noqa: S311 - spreads load, hides nothing
            pause = usual + jitter + float(getattr(error, "retry_after", 0.0))
        sleep(pause)
    return action()
