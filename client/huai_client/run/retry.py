"""Retries after transient errors, with pauses that double, and jitter.

Imports tenacity only after a failure: nearly every request succeeds at once.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Backoff(NamedTuple):
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

    Raises the last error when the retries are used up.  If an error has a `retry_after`, the pause
    is added to it, so that clients do not return together.  `sleep` waits for so many seconds, and
    may raise to end the wait.
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
