"""The files that root obeys."""

import os
from pathlib import Path

import pytest

from huai_program.configuration import ConfigError, read_toml
from huai_program.foreign_writers import find_foreign_writer, is_root_of_machine
from huai_schema.errors import ExitCode

BEYOND_ROOT = 12_345


@pytest.fixture
def config(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    path = folder / "server.toml"
    path.write_text("[a]\n")
    path.chmod(0o644)
    return path


@pytest.mark.parametrize("mode", [0o664, 0o646])
@pytest.mark.parametrize("above", [False, True])
def test_what_others_may_write_is_found(config: Path, mode: int, *, above: bool) -> None:
    place = config.parent if above else config
    place.chmod(mode | 0o111 if above else mode)
    # An ordinary user's files are foreign to root from the first folder on.
    writer = find_foreign_writer(config)
    assert writer is not None
    if os.geteuid() == 0:
        assert writer.path == place
        assert writer.remedy == f"chmod go-w {place}"
        place.chmod(0o755 if above else 0o644)
        assert find_foreign_writer(config) is None


def test_a_sticky_folder_above_is_no_way_in(config: Path) -> None:
    config.parent.chmod(0o1777)
    writer = find_foreign_writer(config)
    assert (writer is None) == (os.geteuid() == 0)
    writer = find_foreign_writer(config.parent)
    assert writer is not None


def test_root_does_not_obey_another_user(config: Path) -> None:
    link = config.parent.parent / "link.toml"
    link.symlink_to(config)
    config.parent.chmod(0o777)
    if not is_root_of_machine():
        assert read_toml(link) == {"a": {}}
        return
    for path in (config, link):
        with pytest.raises(ConfigError) as caught:
            read_toml(path)
        assert caught.value.exit_code == ExitCode.CONFIG
        assert str(config.parent) in caught.value.message
        assert caught.value.hint == f"chmod go-w {config.parent}"
    config.parent.chmod(0o755)
    assert read_toml(link) == {"a": {}}
    os.chown(config.parent, BEYOND_ROOT, -1)
    with pytest.raises(ConfigError) as caught:
        read_toml(config)
    assert f"chown root {config.parent}" in (caught.value.hint or "")


def test_a_missing_file_in_a_foreign_folder_is_refused_too(config: Path) -> None:
    config.unlink()
    config.parent.chmod(0o777)
    if is_root_of_machine():
        with pytest.raises(ConfigError):
            read_toml(config)
    else:
        assert read_toml(config) == {}
