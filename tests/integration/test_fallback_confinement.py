"""The check of confinement, the key `confine`, and how many clients a daemon serves."""

import socket
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from huai_client.transfer.rsync.confinement import version
from huai_server.config.tables import Fallback
from huai_server.fallback.redirect import preload_library
from huai_server.fallback.service import ConfinementError, check_confinement
from huai_server.http.fallback_clients import FallbackSlots, fallback_clients
from tests.support.mounting import may_mount
from tests.support.old_kernels import CREATE_RULESET, OPEN_TREE, without_call
from tests.support.processes import until
from tests.support.rsyncd import rsync_daemon
from tests.support.unprivileged import in_child


def reason(settings: Fallback) -> str | None:
    return check_confinement(settings, preload_library())


def with_neither(settings: Fallback) -> str | None:
    """Return the reason of a process without Landlock and detached mounts."""
    return without_call(OPEN_TREE, lambda: without_call(CREATE_RULESET, lambda: reason(settings)))


def test_landlock_is_enough() -> None:
    refusal = without_call(OPEN_TREE, lambda: reason(Fallback()))
    assert (refusal is None) == (version() > 0)


def test_detached_mounts_are_enough() -> None:
    refusal = without_call(CREATE_RULESET, lambda: reason(Fallback()))
    assert (refusal is None) == may_mount()


def test_what_is_missing_is_named() -> None:
    refusal = with_neither(Fallback())
    assert refusal is not None
    assert refusal.startswith("no Landlock")


def test_without_a_chroot_nothing_is_confined() -> None:
    assert reason(Fallback(use_chroot=False)) == "fallback.use_chroot is false"


def test_the_process_that_tries_it_stays_free() -> None:
    def look() -> bool:
        without_call(OPEN_TREE, lambda: reason(Fallback()))
        reason(Fallback())
        with open(__file__, "rb") as file:
            return bool(file.read(1))

    assert in_child(look)


@pytest.mark.parametrize("use_chroot", [False, True])
def test_confining_can_be_required(*, use_chroot: bool) -> None:
    settings = Fallback(use_chroot=use_chroot, confine="require")
    with pytest.raises(AssertionError, match=r"ConfinementError.*requires it"):
        with_neither(settings)
    if use_chroot and (version() or may_mount()):
        assert reason(settings) is None


def test_it_is_refused_with_51() -> None:
    with pytest.raises(ConfinementError) as refused:
        reason(Fallback(use_chroot=False, confine="require"))
    assert refused.value.exit_code == 51


SECONDS = 60


def connected(port: int, module: str) -> socket.socket:
    """A client that has chosen a module, and says nothing more."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
    connection.sendall(b"@RSYNCD: 31.0\n%b\n" % module.encode())
    return connection


def test_each_client_of_a_module_is_counted(tmp_path: Path) -> None:
    place = FallbackSlots(tmp_path / "lock", 3)
    assert fallback_clients(place) is None
    with (
        rsync_daemon({"m": tmp_path}, max_connections="3", lock_file=str(place.lock_file)) as url,
        ExitStack() as clients,
    ):
        port = urlsplit(url).port
        assert port
        first = clients.enter_context(connected(port, "m"))
        until(lambda: fallback_clients(place) == 1)
        clients.enter_context(connected(port, "m"))
        until(lambda: fallback_clients(place) == 2)
        first.close()
        until(lambda: fallback_clients(place) == 1)
    until(lambda: fallback_clients(place) == 0)
