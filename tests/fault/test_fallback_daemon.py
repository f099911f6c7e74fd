"""The fallback's daemon when processes are killed, ports are taken and the surroundings are odd."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.fault.killing import Ground
from tests.fault.scenarios import fallback
from tests.support.committing import SECONDS
from tests.support.fallback_service import Service, configure, service, upstream
from tests.support.processes import is_running, until
from tests.support.redirecting import contents
from tests.support.rsyncd import rsync_daemon
from tests.support.system_calls import CHANGING, Call, supervise

BIG = os.urandom(3_000_000)


@pytest.fixture
def root(short_path: Path) -> Path:
    return upstream(short_path, {"file": b"content", "big": BIG})


def rsync(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["rsync", *arguments], capture_output=True, text=True, timeout=SECONDS, check=False
    )


def slow_client(running: Service, place: Path) -> subprocess.Popen[bytes]:
    """One that is in the middle of a file when this returns."""
    client = subprocess.Popen(["rsync", "-a", "--bwlimit=1000", f"{running.url}big", f"{place}/"])
    until(lambda: any(place.glob(".big.*")))
    return client


def test_no_listener_outlives_its_service(root: Path) -> None:
    with service(root) as first:
        configure(root, root.parent / "tree", port=first.port)
        (listener,) = first.children()
        first.process.kill()
        first.process.wait(SECONDS)
        until(lambda: not is_running(listener))
    with service(root) as second:
        assert second.port == first.port
        (listener,) = second.children()
        assert rsync(second.url).returncode == 0
        assert second.children() == [listener]  # it was this one that answered


def test_a_new_port_that_is_taken_ends_no_service(root: Path) -> None:
    tree = root.parent / "tree"
    with rsync_daemon({"m": tree}) as url, service(root) as running:
        client = slow_client(running, root.parent / "copy")
        configure(root, tree, port=int(url.rpartition(":")[2]))
        until(lambda: "in use" in (root.parent / "log").read_text())
        configure(root, tree, port=running.port)
        until(lambda: rsync(running.url).returncode == 0)
        assert client.wait(SECONDS) == 0
        assert (root.parent / "copy/big").read_bytes() == BIG


def test_it_waits_for_transfers_and_for_nothing_else(root: Path) -> None:
    # Far longer than the test may take: only an end that is seen ends the waiting.
    configure(root, root.parent / "tree", shutdown_grace=1000)
    with service(root) as running:
        client = slow_client(running, root.parent / "copy")
        (listener,) = running.children()
        os.kill(listener, signal.SIGKILL)
        until(lambda: rsync(running.url).returncode == 0)
        running.process.terminate()
        until(lambda: rsync(running.url).returncode != 0)
        assert client.wait(SECONDS) == 0
        assert running.process.wait(SECONDS) == 0
    assert (root.parent / "copy/big").read_bytes() == BIG


def test_transfers_that_do_not_end_are_ended(root: Path) -> None:
    configure(root, root.parent / "tree", shutdown_grace=0)
    with service(root) as running:
        client = slow_client(running, root.parent / "copy")
        running.process.terminate()
        assert running.process.wait(SECONDS) == 0
        assert client.wait(SECONDS) != 0
    assert not (root.parent / "copy/big").exists()


def test_variables_of_the_environment_lead_nowhere_else(root: Path) -> None:
    with service(root, RSYNC_PROXY="127.0.0.1:1", RSYNC_CONNECT_PROG="false") as running:
        assert rsync(running.url).returncode == 0


@pytest.mark.parametrize("name", ["global", "M"])
def test_a_hidden_module_is_not_served_under_another_s_name(root: Path, name: str) -> None:
    hidden = root.parent / "hidden"
    hidden.mkdir()
    (hidden / "secret").touch()
    tree = root.parent / "tree"
    module = f'[modules.{name}]\npath = "{hidden}"\nfallback = {{kind = "real", list = false}}\n'
    with service(root) as running:
        configure(root, tree, modules=module)
        until(lambda: "cannot distinguish the module" in (root.parent / "log").read_text())
        # Not even the other of the two is served: it would stand for both.
        until(lambda: (rsync(running.url).returncode == 0) == (name == "global"))
        assert "secret" not in rsync(running.url).stdout


def test_modules_count_their_own_connections(root: Path) -> None:
    tree = root.parent / "tree"
    other = f'[modules.n]\npath = "{tree}"\nfallback = {{kind = "real", max_connections = 1}}\n'
    configure(root, tree, modules=f"fallback = {{max_connections = 1}}\n{other}")
    with service(root) as running:
        client = slow_client(running, root.parent / "copy")
        refused = rsync(running.url)
        assert refused.returncode == 5
        assert "@ERROR: max connections (1) reached -- try again later" in refused.stderr
        assert rsync(running.url.replace("/m/", "/n/")).returncode == 0
        assert client.wait(SECONDS) == 0


def test_an_update_that_runs_is_served(ground: Ground) -> None:
    """The mark alone refuses no client: only a holder of its lock is at work."""
    scene = fallback.Served(ground)
    module, listed = scene.module, list[int]()

    def look(call: Call) -> None:
        if module.attr.updating.exists() and len(listed) < 5 and call.name == "rename":
            listed.append(fallback.copy(scene.url, scene.client))

    outcome = supervise(CHANGING, lambda: fallback.run(scene), look)
    assert outcome.result == "updated"
    assert listed
    assert set(listed) <= {0, fallback.VANISHED, fallback.PARTIAL}
    assert fallback.copy(scene.url, scene.client) == 0
    assert contents(scene.client) == contents(module.tree)
