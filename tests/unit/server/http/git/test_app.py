"""The command line and environment of git depend on certain parts of a request only."""

from pathlib import Path

import pytest

from huai_server.http.git.app import protocol_version
from huai_server.http.git.upload_pack import Call, Git


def test_the_protocol_header(subtests: pytest.Subtests) -> None:
    for value, version in [
        (b"version=2", 2),
        (b"version=1", 1),
        (b"version=0", 0),
        (b"version=2:session=x", 2),
        (b"foo:version=1:version=2", 2),
        (b"version=3", 0),
        (b"version=22", 0),
        (b"xversion=2", 0),
        (b"", 0),
        (b"version=2:" + b"x" * 300, 0),
    ]:
        with subtests.test(value=value, version=version):
            assert protocol_version([(b"host", b"x"), (b"git-protocol", value)]) == version


def test_the_command_line_has_constants_and_the_repository_only(tmp_path: Path) -> None:
    git = Git(30)
    command = git.command(Call(tmp_path, 2, advert=False))
    assert command[-1] == str(tmp_path.resolve())
    assert "--timeout=30" in command
    assert "--http-backend-info-refs" not in command
    advert = git.command(Call(tmp_path, 0, advert=True))
    assert set(advert) - set(command) == {"--http-backend-info-refs"}


def test_the_environment_is_made_here(tmp_path: Path) -> None:
    git = Git(30)
    plain = git.environment(Call(tmp_path, 0, advert=True))
    options = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")
    assert {name for name in plain if not name.startswith(options)} == {
        *("PATH", "LC_ALL", "HOME", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL"),
        *("GIT_CONFIG_COUNT", "GIT_NO_LAZY_FETCH", "GIT_ALLOW_PROTOCOL", "GIT_TERMINAL_PROMPT"),
    }
    assert plain["GIT_CONFIG_KEY_0"] == "safe.directory"
    assert plain["GIT_CONFIG_VALUE_0"] == str(tmp_path.resolve())
    newer = git.environment(Call(tmp_path, 2, advert=True))
    assert newer == {**plain, "GIT_PROTOCOL": "version=2"}
