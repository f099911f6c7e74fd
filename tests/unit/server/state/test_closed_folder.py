"""The remaining rights on the folder of a private module."""

import os
from pathlib import Path

import pytest

from huai_server.state.closed_folder import close_folder, is_open


@pytest.mark.parametrize(
    ("before", "after", "is_open_before"),
    [
        (0o755, 0o750, True),
        (0o2775, 0o2770, True),
        (0o701, 0o700, True),
        (0o700, 0o700, False),
        (0o750, 0o750, False),
    ],
)
def test_others_have_no_right(
    tmp_path: Path, before: int, after: int, *, is_open_before: bool
) -> None:
    folder = tmp_path / "module"
    folder.mkdir()
    folder.chmod(before)
    assert is_open(folder) == is_open_before
    close_folder(folder, tmp_path)
    assert folder.stat().st_mode & 0o7777 == after
    assert not is_open(folder)


def test_the_group_is_that_of_the_folder_above(tmp_path: Path) -> None:
    assert os.geteuid() == 0, "only root gives any group"
    folder = tmp_path / "module"
    folder.mkdir(0o755)
    os.chown(tmp_path, -1, 4321)
    close_folder(folder, tmp_path)
    assert folder.stat().st_gid == 4321
    assert folder.stat().st_mode & 0o7777 == 0o750
