"""One site for all tests of a worker: starting a server costs more than most tests."""

from collections.abc import Iterator

import pytest

from tests.integration.upstream import Site, site


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server and a daemon, with modules of other tests."""
    with site(tmp_path_factory.mktemp("site") / "site") as found:
        yield found
