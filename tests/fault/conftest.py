"""The site of the integration tests, for those that break it."""

from tests.integration.conftest import place

__all__ = ["place"]
