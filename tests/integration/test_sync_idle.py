"""A sync that finds nothing new costs one request, and sees that its tree is gone."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from huai_client.config import load as client_config
from huai_schema.errors import ExitCode
from huai_server.commit.commit import commit_tree
from huai_server.commit.result import CommitOptions
from huai_server.config import load as config
from tests.support.counting_proxy import counting
from tests.support.loaded import telling
from tests.support.local_trees import fingerprint
from tests.support.upstream import (
    CLIENT,
    ENVIRONMENT,
    SECONDS,
    T0,
    Downstream,
    Pair,
    Site,
    assert_equal,
)

HEAVY = (
    *("rich", "blake3", "tomlkit", "subprocess", "huai_client.sync.sync"),
    *("http.client", "urllib.request", "email", "ssl"),
)
"""Modules that a poll does not need."""


@pytest.fixture(name="pair")
def synced_pair(place: Site) -> Pair:
    up = place.upstream()
    up.many(b"folder", 5)
    return up, place.synced_downstream(up)


def test_one_request(place: Site, pair: Pair) -> None:
    _, down = pair
    with counting(place.url) as counted:
        down.configure(url=counted.url)
        ended = down.process("sync", down.name)
    assert ended.code == 0, ended
    assert [line.split()[0] for line in counted.requests] == [b"GET"]
    assert "nothing new" in ended.err
    assert f"Total file size: {down.state.total_bytes} bytes" in ended.out
    assert down.state.total_bytes == 50


def test_two_requests_where_there_is_something_new(place: Site, pair: Pair) -> None:
    up, synced = pair
    up.many(b"other", 2)
    up.commit()
    for down in (synced, place.downstream(up)):
        with counting(place.url) as counted:
            down.configure(url=counted.url)
            ended = down.process("sync", down.name)
        assert ended.code == 0, ended
        assert [line.split()[0] for line in counted.requests] == [b"GET", b"GET"]
        assert counted.connections == 1


def loaded(down: Downstream) -> str:
    """Which heavy modules a sync has imported when it ends."""
    code = f"{telling(HEAVY)}from huai_client.cli.main import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--root", str(down.root), "sync", "-q", down.name],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=SECONDS,
        check=True,
    )
    return done.stderr


def test_nothing_heavy_is_loaded_and_quiet_says_nothing(pair: Pair) -> None:
    up, down = pair
    assert loaded(down) == "[]\n"
    assert down.sync("-q") == (0, "", "")
    up.put(b"new", b"1")
    up.commit()
    assert "huai_client.sync.sync" in loaded(down)
    up.put(b"newer", b"1")
    up.commit()
    assert down.sync("--quiet") == (0, "", "")


def test_a_new_commit_of_the_same_tree(pair: Pair) -> None:
    up, down = pair
    os.utime(up.tree, ns=(T0, T0))
    up.commit()
    down.synced()
    up.put(b"new", b"1")
    up.commit()
    up.at(b"new").unlink()
    os.utime(up.tree, ns=(T0, T0))
    newest = up.commit().head
    before = fingerprint(down.dest)
    result = down.synced()
    assert (result["changed"], result["serial"]) == (False, newest.info.serial)
    assert down.state.applied == newest.commit
    assert fingerprint(down.dest) == before


def test_status(place: Site, pair: Pair, tmp_path: Path) -> None:
    _, down = pair
    client_config.add_module(
        down.root, "never", client_config.Module(url=place.url, dest=str(tmp_path))
    )
    ended = down.run("status")
    assert ended.code == 0
    assert "serial 1, synced" in ended.out
    assert "never: " in ended.out
    assert "never synced" in ended.out
    modules = {event["module"]: event for event in down.run("status", "--json").events("module")}
    assert modules[down.name]["applied"] == down.state.applied
    assert modules["never"]["applied"] is None
    assert down.run("status", "nevr").code == 45


def test_two_at_once(place: Site, pair: Pair) -> None:
    _, down = pair
    # A tiny server that accepts and does not answer keeps the first run waiting.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        down.configure(url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        first = down.spawn("sync", down.name)
        try:
            connection, _ = silent.accept()
            with connection:
                second = down.sync()
                assert second.code == 43
                assert f"(process {first.pid})" in second.err
                assert f"(process {first.pid})" in down.run("status").out
                down.configure(url=place.url)
                third = down.spawn("sync", down.name, "--wait", "60")
        finally:
            first.kill()
            first.communicate()
    out, err = third.communicate(timeout=SECONDS)
    assert third.returncode == 0, (out, err)


def test_remove_keeps_the_tree(pair: Pair) -> None:
    _, down = pair
    ended = down.run("remove", down.name, "--json")
    assert ended.code == 0
    assert ended.events("removed")
    assert (down.dest / "folder" / "4").exists()
    assert not down.state_file.parent.exists()
    assert down.sync().code == 45
    assert down.run("remove", down.name).code == 45


def test_the_installed_program_says_its_version() -> None:
    done = subprocess.run(
        [*CLIENT, "--version"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=SECONDS,
        check=True,
    )
    assert done.stdout.startswith("huai-client, version ")


@pytest.fixture
def synced(place: Site) -> Downstream:
    """A module with nothing new."""
    up = place.upstream()
    up.many(b"pool", 200)
    up.put(b"top", b"x")
    down = place.synced_downstream(up)
    assert "nothing new" in down.sync().err
    return down


def change_dest(down: Downstream, dest: str) -> None:
    """Name another DEST in client.toml."""
    file = down.root / "client.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(f'dest = "{down.dest}"', f'dest = "{dest}"'), encoding="utf-8")


def test_a_tree_that_is_gone_or_empty(synced: Downstream) -> None:
    shutil.rmtree(synced.dest)
    done = synced.sync()
    assert done.code == ExitCode.DESTINATION
    assert "check that its disk is mounted" in done.err
    synced.dest.mkdir()
    done = synced.sync()
    assert done.code == ExitCode.DESTINATION
    assert "holds nothing of what was synced there" in done.err


def test_an_empty_tree_after_a_repair_that_failed(place: Site) -> None:
    up = place.upstream()
    up.put(b"file", b"x")
    up.put(b"other")
    down = place.synced_downstream(up)
    (down.dest / "file").unlink()
    away = up.at(b"file").rename(place.folder / "away")
    assert down.verify("--repair").code == ExitCode.VANISHED
    away.rename(up.at(b"file"))
    assert down.state.attempts
    (down.dest / "other").unlink()
    assert down.sync().code == ExitCode.DESTINATION
    shutil.rmtree(down.repository)
    assert down.sync().code == ExitCode.DESTINATION
    (down.dest / "another").touch()
    down.synced()
    assert (down.dest / "file").exists()


def test_another_dest(synced: Downstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "strange").touch()
    monkeypatch.chdir(synced.dest)
    config = synced.root / "client.toml"
    before = config.read_bytes()
    rows = [(dest, "not an absolute path") for dest in ("srv/m/b", "~/b", ".")]
    for dest, reason in (*rows, (str(tmp_path), f"{tmp_path} holds nothing")):
        config.write_bytes(before)
        change_dest(synced, dest)
        done = synced.sync()
        assert done.code == ExitCode.DESTINATION, dest
        assert reason in done.err


def test_a_symlink_is_refused_and_a_part_that_is_gone_is_not(
    synced: Downstream, tmp_path: Path
) -> None:
    shutil.rmtree(synced.dest / "pool")
    assert "nothing new" in synced.sync().err
    os.rename(synced.dest, tmp_path / "moved")
    synced.dest.symlink_to(tmp_path / "moved")
    assert synced.sync().code == ExitCode.DESTINATION


def test_an_empty_module_has_nothing_to_look_for(place: Site) -> None:
    up = place.upstream()
    module = config.load(up.root).module(up.name)
    commit_tree(up.name, module, up.places, CommitOptions(allow_empty=True))
    down = place.downstream(up)
    down.synced()
    assert "nothing new" in down.sync().err


def test_a_state_of_before_is_completed_by_one_run(place: Site) -> None:
    up = place.upstream()
    up.put(b"a/b", b"x")
    down = place.synced_downstream(up)
    values = json.loads(down.state_file.read_text(encoding="utf-8"))
    del values["marks"]
    down.state_file.write_text(json.dumps(values), encoding="utf-8")
    assert "nothing to do" in down.sync().err
    assert down.state.marks == ("a",)
    assert "nothing new" in down.sync().err
    assert_equal(up, down)
