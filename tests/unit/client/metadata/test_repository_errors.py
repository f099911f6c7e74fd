"""Errors of a metadata repository that cannot be written, or is damaged."""

import os
from pathlib import Path

import pytest

from huai_client.metadata.repository import DamagedRepositoryError, Repository
from huai_schema.errors import FormatError
from tests.support.committing import Upstream, git


def test_damaged_objects_are_not_missing_ones(tmp_path: Path) -> None:
    upstream = Upstream(tmp_path / "up")
    upstream.write("f", "1")
    upstream.commit()
    git(upstream.places.repository, "repack", "-adq")
    repository = Repository(upstream.places.repository)
    commit, absent = bytes.fromhex(upstream.head.commit), bytes(20)
    assert commit in repository
    assert absent not in repository
    with pytest.raises(DamagedRepositoryError, match="the object is missing"):
        repository.read(absent, "blob")
    with pytest.raises(FormatError, match="a blob was expected"):
        repository.read(commit, "blob")
    for ending in ("pack", "idx"):
        for file in upstream.places.repository.glob(f"objects/pack/*.{ending}"):
            file.chmod(0o644)
            os.truncate(file, 20)
        damaged = Repository(upstream.places.repository)
        for read in (damaged.find, damaged.__contains__) if ending == "idx" else (damaged.find,):
            with pytest.raises(DamagedRepositoryError):
                read(commit)
