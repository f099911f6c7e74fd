"""Trying again what failed and may pass: after pauses that double, with jitter.

Loads what does it only when something has failed: nearly every question is answered at once.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Backoff(NamedTuple):
    """How often, and how far apart."""

    retries: int
    """Attempts after the first."""
    first: float
    """Seconds before the first retry, without jitter."""
    longest: float
    """Seconds, without jitter."""


def retry(
    action: Callable[[], T],
    passing: type[Exception],
    backoff: Backoff,
    sleep: Callable[[float], None],
) -> T:
    """What `action` returns, as soon as it does not raise a `passing` error; else the last of them.

    If the error has a `retry_after`, the pause comes after it: those who were told the same do not
    come back together.  `sleep` waits for so many seconds, and ends the waiting by raising.
    """
    try:
        return action()
    except passing as error:
        failed = [error]
    import tenacity  # see above

    def attempt() -> T:
        if failed:
            raise failed.pop()
        return action()

    usual = tenacity.wait_exponential(backoff.first, max=backoff.longest) + tenacity.wait_random(
        0, backoff.first
    )

    def pause(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        return usual(state) + float(getattr(error, "retry_after", 0.0))

    return tenacity.Retrying(
        stop=tenacity.stop_after_attempt(backoff.retries + 1),
        wait=pause,
        retry=tenacity.retry_if_exception_type(passing),
        sleep=sleep,
        reraise=True,
    )(attempt)
