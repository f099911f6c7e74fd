"""The record of hardlink groups, in a folder that others may write to."""

from pathlib import Path

import pytest

from huai_server.commit.link_record import LinkRecord
from tests.support.plants import Plant, plants


@plants
def test_a_planted_file_is_not_written_to(tmp_path: Path, plant: Plant) -> None:
    victim, path = tmp_path / "victim", tmp_path / "hardlinks"
    victim.write_bytes(b"kept")
    plant(victim, tmp_path / "hardlinks.new")
    record = LinkRecord(path)
    record.add(b"a\tb\n")
    record.replace()
    assert (path.read_bytes(), victim.read_bytes()) == (b"a\tb\n", b"kept")


def test_no_link_is_followed_where_lists_add_to_it(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "hardlinks"
    victim.write_bytes(b"kept\n")
    path.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        LinkRecord(path).extend(b"a\tb\n")
    assert victim.read_bytes() == b"kept\n"
