"""`huai-server serve` as a process of its own, from the configuration to the signal."""

import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from huai_server.config.load import config_path
from tests.support.committing import (
    NAME,
    SECONDS,
    git,
    run_server,
    server_command,
    server_environment,
)
from tests.support.processes import run_program
from tests.support.serving import serving
from tests.support.unprivileged import NOBODY, program_as_nobody
from tests.support.upstream import T0, Site, Upstream, assert_equal


@pytest.fixture
def root(short_path: Path) -> Path:
    short_path.chmod(0o755)
    add_and_commit(short_path)
    return short_path / "state"


def add_and_commit(folder: Path) -> None:
    """A module of one file, with its tree and the state root in `folder`."""
    tree = folder / "tree"
    tree.mkdir()
    (tree / "f").write_text("content")
    run_server(folder / "state", "add", NAME, str(tree))
    run_server(folder / "state", "commit", NAME)


def head(root: Path, name: str = NAME) -> str:
    return git(root / "modules" / name / "repository.git", "rev-parse", "main")


def test_git_clones_what_was_committed(root: Path, tmp_path: Path) -> None:
    with serving(root) as server:
        assert server.clone(tmp_path / "one") == head(root)
        (root.parent / "tree/new").touch()
        run_server(root, "commit", NAME)
        assert server.clone(tmp_path / "two") == head(root)
        assert server.get(f"/api/v1/modules/{NAME}")["serial"] == 2
        assert server.stop() == 0


def test_a_module_added_meanwhile_appears_and_goes(root: Path, tmp_path: Path) -> None:
    with serving(root) as server:
        assert set(server.modules()) == {NAME}
        run_server(root, "add", "n", str(root.parent / "tree"))
        assert server.modules()["n"]["serial"] is None
        run_server(root, "commit", "n")
        assert server.modules()["n"]["serial"] == 1
        assert server.clone(tmp_path / "n", "n") == head(root, "n")
        run_server(root, "remove", NAME)
        assert set(server.modules()) == {"n"}
        assert server.get("/healthz")["status"] == "ok"
        assert server.stop(signal.SIGINT) == 0


def replace_config(root: Path, text: str) -> None:
    """As editors do: no reader finds it empty."""
    written = root / "written"
    written.write_text(text)
    written.rename(config_path(root))


def test_a_broken_configuration_changes_nothing(root: Path, tmp_path: Path) -> None:
    good = config_path(root).read_text()
    with serving(root) as server:
        replace_config(root, "[modules\n")
        for _ in range(3):
            assert set(server.modules()) == {NAME}
        assert server.clone(tmp_path / "one") == head(root)
        log = server.log.read_text()
        assert log.count("the former modules stay in use") == 1
        assert "server.toml" in log
        replace_config(root, good.replace("[modules.m]", "[modules.other]"))
        assert set(server.modules()) == {"other"}


def test_a_damaged_module_does_not_hide_the_others(root: Path) -> None:
    run_server(root, "add", "n", str(root.parent / "tree"))
    run_server(root, "commit", "n")
    (root / "modules/m/repository.git/HEAD").unlink()
    with serving(root) as server:
        modules = server.modules()
        assert modules["n"]["serial"] == 1
        assert modules["m"]["problem"]


def test_another_user_may_serve_where_the_root_lets_them(short_path: Path, tmp_path: Path) -> None:
    """As huai-server.service says: the folder is made for a group before the first `add`."""
    short_path.chmod(0o755)
    root = short_path / "state"
    root.mkdir()
    if os.geteuid() == 0:
        os.chown(root, -1, NOBODY)
    root.chmod(0o2750)
    add_and_commit(short_path)
    assert root.stat().st_mode & 0o7777 == 0o2750
    with serving(root, program_as_nobody("huai_server")) as server:
        assert server.modules()[NAME]["serial"] == 1
        assert server.clone(tmp_path / "one") == head(root)
        assert server.stop() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_learns_who_owns_the_root(root: Path) -> None:
    command = server_command(root, "serve", "--port", "0", "--json")
    command[2] = program_as_nobody("huai_server")
    done = run_program(*command, env=server_environment())
    assert done.returncode == 40, done
    error = json.loads(done.stdout)
    assert (error["type"], error["name"]) == ("error", "CONFIG")
    assert f"{root} belongs to " in error["hint"]


def test_a_port_in_use_is_a_clear_error(root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run_server(root, "serve", "--port", str(port))
    assert done.returncode == 40
    assert f"127.0.0.1:{port}" in done.stderr
    assert "in use\n" in done.stderr  # the address once


def test_an_address_that_cannot_be(root: Path) -> None:
    for host in ("nonsense.invalid", "192.0.2.1", "a..b", "a\0b"):
        config_path(root).write_text(f"[listen]\nhost = {json.dumps(host)}\nport = 0\n")
        done = run_server(root, "serve")
        assert done.returncode == 40, host
        assert done.stderr


def test_requests_are_logged_if_they_are_wrong_or_all_is_to_be_logged(root: Path) -> None:
    with serving(root) as server:
        server.get("/healthz")
        assert "GET /healthz" not in server.log.read_text()
        with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as connection:
            connection.sendall(b"\x16\x03\x01 this is TLS\r\n\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 400")
        assert "127.0.0.1: Invalid HTTP request" in server.log.read_text()
    text = config_path(root).read_text()
    config_path(root).write_text(f"[listen]\naccess_log = true\n{text}")
    with serving(root) as server:
        more = "X-Forwarded-For: 192.0.2.7\r\nUser-Agent: huai-client/1"  # which is not logged
        head = f"GET /healthz?%1b HTTP/1.1\r\nHost: x\r\n{more}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as connection:
            connection.sendall(head.encode())
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        (line,) = server.log.read_text().splitlines()
    assert re.fullmatch(r'[0-9T:+-]{24} 192\.0\.2\.7:0 - "GET /healthz\?%1b HTTP/1.1" 200', line)


def test_an_address_of_version_6_has_brackets(root: Path) -> None:
    process = subprocess.Popen(
        server_command(root, "serve", "--host", "::1", "--port", "0"),
        env=server_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert re.fullmatch(r"listening on http://\[::1\]:\d+/\n", process.stdout.readline())
    finally:
        process.kill()
        process.wait(SECONDS)
        process.stdout.close()


ODD = (b"\xff\xfe", b"a%2fb", b"line\nfeed", b"sp ace+?#&", b"back\\slash", b"\xc3\xa9", b"n" * 255)
LARGE = 40 << 20
"""More than the smallest file with a block index."""


def mirror(place: Site) -> Upstream:
    """A module that names `serve` as the place of its content."""
    up = place.upstream(volatile=("/beat",))
    up.change(content_urls=(f"{place.url}/content/{up.name}",))
    up.put(b"large", os.urandom(LARGE))
    up.put(b"empty")
    up.put(b"beat", b"0")
    up.many(b"d", 300)
    for name in ODD:
        up.put(b"d/deep/" + name, name)
    up.at(b"link").symlink_to("d/0")
    return up


def test_everything_comes_from_one_server(place: Site) -> None:
    up = mirror(place)
    up.commit()
    down = place.downstream(up)
    assert down.sync().code != 0  # the module serves no content
    up.change(serve_content=True)
    down.synced()
    assert_equal(up, down)
    up.put(b"d/0", b"changed", mtime=T0 + 10**9)
    up.put(b"d/new", b"new")
    up.at(b"d/1").unlink()
    up.commit()
    down.synced()
    assert_equal(up, down)
    up.put(b"d/2", b"committed", mtime=T0 + 10**9)
    up.commit()
    up.put(b"d/2", b"not committed", mtime=T0 + 10**9)
    up.put(b"beat", b"12", mtime=T0 + 10**9)
    assert down.sync().code == 24  # what is not as committed waits, unless it is volatile
    assert (down.dest / "d/2").read_bytes() != b"not committed"
    up.commit()
    down.synced()
    up.put(b"beat", b"123", mtime=T0 + 2 * 10**9)
    other = place.downstream(up)
    other.synced()
    assert (other.dest / "beat").read_bytes() == b"123"


def test_the_server_of_the_metadata_states_that_it_has_the_content(place: Site) -> None:
    up = mirror(place)
    up.change(content_urls=(), serve_content=True)
    down = place.synced_downstream(up)
    assert_equal(up, down)
    up.change(content_urls=(), serve_content="large")
    up.put(b"d/new", b"new")
    up.commit()
    result = down.sync()
    assert result.code == 40
    assert "names no content URL" in result.err
