"""The decision when a repository is repacked."""

import os
from pathlib import Path

import pytest

from huai_client.metadata.packs import needs_repack

MIB = 1 << 20


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], False),
        ([900 * MIB], False),
        ([1] * 40, False),
        ([1] * 41, True),
        ([14 * MIB, *[4 * MIB] * 16], False),
        ([14 * MIB, *[4 * MIB] * 16, 1], True),
        ([100 * MIB, *[20 * MIB] * 10], False),
        ([100 * MIB, *[20 * MIB] * 10, 1], True),
    ],
)
def test_many_or_large_ones(tmp_path: Path, sizes: list[int], *, expected: bool) -> None:
    folder = tmp_path / "objects" / "pack"
    folder.mkdir(parents=True)
    for number, size in enumerate(sizes):
        pack = folder / f"pack-{number}.pack"
        pack.touch()
        os.truncate(pack, size)
        pack.with_suffix(".idx").touch()
    assert needs_repack(tmp_path, 40) == expected
