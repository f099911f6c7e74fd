"""The file `shallow` of a repository."""

from pathlib import Path

from huai_program.shallow import write_shallow


def test_the_shallow_file(tmp_path: Path) -> None:
    write_shallow(tmp_path, ["b" * 40, "a" * 40])
    file = tmp_path / "shallow"
    assert file.read_text() == "a" * 40 + "\n" + "b" * 40 + "\n"
    inode = file.stat().st_ino
    write_shallow(tmp_path, ["a" * 40, "b" * 40])
    assert file.stat().st_ino == inode
    write_shallow(tmp_path, [])
    assert not file.exists()
    write_shallow(tmp_path, [])
    assert not list(tmp_path.iterdir())
