"""Fixtures of the integration tests.

One site for all tests of a worker: starting a server costs more than most tests.
"""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.archive import Signer, signing
from tests.support.http_fixtures import Repository, Server, large_repository, running
from tests.support.rsyncd import rsync_daemon
from tests.support.short_waits import shorten
from tests.support.transfers import Downstream
from tests.support.upstream import Site, Upstream, site


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the product's pauses, for the tests of this folder alone."""
    shorten("huai_client", "huai_schema", "huai_server", replace=monkeypatch.setattr)


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server and a daemon, with modules of other tests."""
    with site(tmp_path_factory.mktemp("site") / "site") as shared_site:
        yield shared_site


@pytest.fixture
def up(place: Site) -> Upstream:
    """A module of three files, committed."""
    up = place.upstream()
    up.many(b"folder", 3)
    up.commit()
    return up


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Metadata that take a while to send, to serve and not to change."""
    return large_repository(tmp_path_factory.mktemp("large"))


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signer]:
    """A signer of archives with the keys `old` and `new`; each public key is in a file."""
    folder = tmp_path_factory.mktemp("signer")
    with signing(folder / "gnupg") as archive_signer:
        for name in ("old", "new"):
            archive_signer.key(name, folder / f"{name}.gpg")
        yield archive_signer


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A tree to transfer from."""
    folder = tmp_path / "upstream"
    folder.mkdir()
    return folder


@pytest.fixture
def url(upstream: Path) -> Iterator[str]:
    """The tree `upstream`, as the module of an rsync daemon."""
    with rsync_daemon({"m": upstream}) as daemon:
        yield f"{daemon}/m"


@pytest.fixture
def down(tmp_path: Path) -> Downstream:
    """A tree to transfer to, with nothing but its staging area."""
    return Downstream(tmp_path / "dest")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Metadata of a module `m` with one commit, in a folder to serve."""
    folder = tmp_path / "served"
    folder.mkdir()
    created = Repository.create(folder, "m")
    created.commit(b"first")
    return created


@pytest.fixture
def server(repository: Repository) -> Iterator[Server]:
    """A server of `repository`."""
    with running(repository.path.parent) as started:
        yield started


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    """A client of `server`."""
    with httpx.Client(base_url=server.url, timeout=60) as http:
        yield http
