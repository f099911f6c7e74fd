"""A site for those that break it, in memory, and a small disk."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fault.killing import Ground
from tests.fault.story import Story, four_commits
from tests.integration.conftest import down, upstream
from tests.support.memory_disk import memory_folder
from tests.support.upstream import Site, site

__all__ = ["down", "upstream"]


@pytest.fixture(scope="session")
def disk_folder() -> Path:
    """For hundreds of runs that each sync what they wrote."""
    return memory_folder()


@pytest.fixture
def tmp_path(disk_folder: Path) -> Iterator[Path]:
    """There as well."""
    with tempfile.TemporaryDirectory(prefix="h", dir=disk_folder) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def place(disk_folder: Path) -> Iterator[Site]:
    """A server and a daemon, with modules of other tests."""
    with (
        tempfile.TemporaryDirectory(prefix="h", dir=disk_folder) as folder,
        site(Path(folder) / "site") as ground,
    ):
        yield ground


@pytest.fixture(scope="session")
def story(place: Site) -> Story:
    return four_commits(place)


@pytest.fixture
def ground(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Ground]:
    """The place of a scenario."""
    with ExitStack() as stack:
        yield Ground(tmp_path, request, stack)


@pytest.fixture
def disk(short_path: Path) -> Iterator[Path]:
    """A file system of ten megabytes; only root may mount it."""
    folder = short_path / "disk"
    folder.mkdir()
    options = ["-o", "size=10m,nr_inodes=200,mode=755"]
    subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)], check=True, timeout=30)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True, timeout=30)
