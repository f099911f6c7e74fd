"""The site of the integration tests, for those that break it, and a small disk."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault.story import Story, four_commits
from tests.integration.conftest import down, place, upstream
from tests.support.upstream import Site

__all__ = ["down", "place", "upstream"]


@pytest.fixture(scope="module")
def story(place: Site) -> Story:
    return four_commits(place)


@pytest.fixture
def disk(short_path: Path) -> Iterator[Path]:
    """A file system of ten megabytes; only root may mount it."""
    folder = short_path / "disk"
    folder.mkdir()
    options = ["-o", "size=10m,nr_inodes=200,mode=755"]
    subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)], check=True, timeout=30)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True, timeout=30)
