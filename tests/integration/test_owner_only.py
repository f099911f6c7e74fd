"""Logins and locks are their owner's only, and a password is never shown."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_program.configuration import ConfigError
from huai_schema.errors import ExitCode
from huai_server.config.load import load
from tests.support.processes import run_program
from tests.support.unprivileged import program_as_nobody, run_unprivileged
from tests.support.upstream import ENVIRONMENT, SERVER, Downstream, Site

LOGIN = "http://someone:hidden-word@127.0.0.1:1"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def usual_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_state_and_configuration_of_the_client(place: Site, tmp_path: Path) -> None:
    up = place.upstream()
    up.put(b"a", mode=0o644)
    up.commit()
    down = Downstream(up.name, tmp_path / "dest", tmp_path / "above" / "root")
    down.dest.mkdir()
    assert down.run("add", up.name, place.url, str(down.dest)).code == 0
    down.synced()
    assert mode(down.root) == 0o700
    assert mode(down.root / "client.toml") == 0o600
    assert mode(down.root / "modules") == 0o700
    assert mode(down.root / "modules" / up.name / "lock") == 0o600
    assert mode(down.dest / "a") == 0o644
    assert mode(tmp_path / "above") == 0o755


def test_what_was_open_before_is_shut_or_warned_of(place: Site) -> None:
    up = place.upstream()
    up.put(b"a")
    down = place.synced_downstream(up)
    lock = down.root / "modules" / up.name / "lock"
    lock.chmod(0o644)
    down.root.chmod(0o755)
    file = down.root / "client.toml"
    file.chmod(0o644)
    events = down.run("doctor", up.name, "--json").events("check")
    (root,) = [event for event in events if event["check"] == "root"]
    assert root["result"] == "warn"
    assert f"chmod -R go-rwx {down.root}" in root["fix"]
    down.sync()
    assert mode(lock) == 0o600
    assert down.run("add", "--no-check", "other", LOGIN, f"{down.dest}-other").code == 0
    assert mode(file) == 0o600


def test_state_and_configuration_of_the_server(tmp_path: Path) -> None:
    root, tree = tmp_path / "root", tmp_path / "tree"
    tree.mkdir()
    (tree / "a").touch()
    for command in (["add", "m", str(tree)], ["commit", "m"]):
        run_program(*SERVER, "--root", root, *command, env=ENVIRONMENT, check=True)
    assert mode(root) == 0o700
    assert mode(root / "modules" / "m" / "lock") == 0o600
    assert mode(root / ".server.toml.lock") == 0o600


def read_a_state_of_another_user(folder: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load(folder / "root")
    assert f"{folder}/root belongs to " in refused.value.hint
    assert ", and this is " in refused.value.hint


def test_a_user_who_may_not_read_the_state_learns_its_owner(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "server.toml").touch()
    (tmp_path / "root").chmod(0o700 if os.geteuid() == 0 else 0)
    for above in list(tmp_path.parents)[:-1]:
        if above.stat().st_uid == os.geteuid():
            above.chmod(above.stat().st_mode | 0o011)
    run_unprivileged(read_a_state_of_another_user, tmp_path)


@pytest.mark.parametrize("command", ["check", "maintain", "scrub", "digest", "probe", "status"])
def test_commands_of_another_user_say_whose_the_state_is(short_path: Path, command: str) -> None:
    root, tree = short_path / "root", short_path / "tree"
    tree.mkdir()
    (tree / "a").touch()
    for arguments in (["add", "m", str(tree)], ["commit", "m"]):
        run_program(*SERVER, "--root", root, *arguments, env=ENVIRONMENT, check=True)
    short_path.chmod(0o755)
    for folder in (root, root / "modules"):
        folder.chmod(0o755)
    (root / "modules" / "m").chmod(0o700 if os.geteuid() == 0 else 0)
    program = [sys.executable, "-c", program_as_nobody("huai_server")]
    try:
        done = run_program(*program, "--root", root, command, "m", env=ENVIRONMENT)
    finally:
        (root / "modules" / "m").chmod(0o700)
    assert done.returncode == ExitCode.FILE_IO
    assert "Permission denied" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
