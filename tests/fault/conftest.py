"""The site of the integration tests, for those that break it."""

import pytest

from tests.fault.story import Story, four_commits
from tests.integration.conftest import down, place, upstream
from tests.integration.upstream import Site

__all__ = ["down", "place", "upstream"]


@pytest.fixture(scope="module")
def story(place: Site) -> Story:
    return four_commits(place)
