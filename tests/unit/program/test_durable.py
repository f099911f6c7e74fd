"""Files that are replaced as a whole."""

from pathlib import Path

import pytest

from huai_program.durable import replace_file, replacing
from tests.support.plants import Plant, plants


def test_a_file_is_replaced_and_its_permissions_are_those_asked_for(tmp_path: Path) -> None:
    path, temporary = tmp_path / "file", tmp_path / "file.new"
    temporary.write_bytes(b"a long rest of a killed run")
    for content, permissions in ((b"one", 0o640), (b"", 0o600), (b"two" * 9999, 0o604)):
        replace_file(path, content, temporary, permissions=permissions)
        assert path.read_bytes() == content
        assert path.stat().st_mode & 0o7777 == permissions
        assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_replaced_stays(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(tmp_path / "file", b"content", tmp_path / "file.new")
    assert (tmp_path / "file").is_dir()


def test_what_is_not_written_to_its_end_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write() -> None:
        with replacing(path, tmp_path / "file.new") as file:
            file.write(b"a beginning")
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        write()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@plants
def test_a_planted_temporary_file_is_not_opened(tmp_path: Path, plant: Plant) -> None:
    victim, path, temporary = (tmp_path / name for name in ("victim", "file", "file.new"))
    victim.write_bytes(b"kept")
    victim.chmod(0o600)
    plant(victim, temporary)
    replace_file(path, b"content", temporary, permissions=0o644)
    assert victim.read_bytes() == b"kept"
    assert victim.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes() == b"content"
    assert path.is_file()
    assert not path.is_symlink()
