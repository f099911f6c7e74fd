"""The number of examples of a property test, in proportion to the profile's number."""

from hypothesis import settings

_USUAL = 100
"""Examples of the profile `ci`, for which the numbers in the tests are meant."""


def examples(count: int) -> settings:
    """Return settings for `count` examples in CI: fewer while editing, more in a thorough run."""
    return settings(max_examples=max(5, count * settings().max_examples // _USUAL))
