"""A sync that finds nothing new costs one request and nothing else."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from huai_client.config import load as client_config
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
    up, down = pair
    up.many(b"other", 2)
    up.commit()
    with counting(place.url) as counted:
        down.configure(url=counted.url)
        ended = down.process("sync", down.name)
    assert ended.code == 0, ended
    assert [line.split()[0] for line in counted.requests] == [b"GET", b"GET"]
    assert counted.connections == 1


def test_a_first_sync_has_one_connection(place: Site, pair: Pair) -> None:
    with counting(place.url) as counted:
        down = place.downstream(pair[0], url=counted.url)
        assert down.process("sync", down.name).code == 0
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


def test_nothing_heavy_is_loaded(pair: Pair) -> None:
    up, down = pair
    assert loaded(down) == "[]\n"
    up.put(b"new", b"1")
    up.commit()
    assert "huai_client.sync.sync" in loaded(down)


def test_quiet_says_nothing(pair: Pair) -> None:
    up, down = pair
    assert down.sync("-q") == (0, "", "")
    up.put(b"new", b"1")
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
