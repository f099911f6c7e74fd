"""Slots for connections: limited across threads and processes."""

import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from huai_client.state.hosts import ConnectionLimitError, HostLimit, Hosts
from tests.support.upstream import ENVIRONMENT

SECONDS = 20


class _EnoughError(Exception):
    """The test has waited long enough."""


def never(_: float) -> None:
    raise _EnoughError


def test_no_more_than_there_may_be(tmp_path: Path) -> None:
    limit = HostLimit(tmp_path / "h", 2)
    with limit.slot(never), limit.slot(never):
        pauses: list[float] = []
        waits: list[int] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 4:
                raise _EnoughError

        with pytest.raises(_EnoughError), limit.slot(pause, lambda: waits.append(len(pauses))):
            pass
        assert pauses == [0.02, 0.2, 0.2, 0.2]
        assert waits == [1, 2, 3]
    with limit.slot(never), limit.slot(never):
        pass


def test_more_are_taken_only_if_they_are_free(tmp_path: Path) -> None:
    limit = HostLimit(tmp_path / "h", 4)
    with limit.slot(never), limit.more(2) as two, limit.more(3) as rest:
        assert [len(two), len(rest)] == [2, 1]
        with limit.more(1) as none:
            assert none == ()
    with limit.slot(never), limit.more(9) as all_others:
        assert len(all_others) == 3


def test_whoever_had_enough_gets_fewer_requests() -> None:
    hosts = Hosts()
    peaks = []
    for _ in range(9):
        peaks.append(hosts.requests("https://h"))
        hosts.fewer_requests("https://h")
    assert peaks == [100, 50, 25, 12, 6, 3, 1, 1, 1]
    assert hosts.requests("https://other") == 100


def test_threads_take_turns(tmp_path: Path) -> None:
    busy: list[int] = []
    most: list[int] = []

    def connect() -> None:
        with HostLimit(tmp_path / "h", 2).slot(lambda _: time.sleep(0.001)):
            busy.append(1)
            most.append(len(busy))
            time.sleep(0.01)
            busy.pop()

    threads = [threading.Thread(target=connect) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert len(most) == 12
    assert max(most) == 2


def test_a_place_is_held_by_the_program_that_inherited_it(tmp_path: Path) -> None:
    """Hold the slot for rsync, which may outlive the client that started it."""
    limit = HostLimit(tmp_path / "h", 1)
    with limit.slot(never) as handle:
        child = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"],
            stdin=subprocess.PIPE,
            pass_fds=[handle],
            env=ENVIRONMENT,
        )
    try:
        with pytest.raises(_EnoughError), limit.slot(never):
            pass
        child.kill()
        child.wait(SECONDS)
        with limit.slot(never):
            pass
    finally:
        child.kill()
        child.communicate()


def test_nobody_overtakes_those_who_queue(tmp_path: Path) -> None:
    limit = HostLimit(tmp_path / "h", 1)
    with limit.slot(never):
        pass
    line = os.open(tmp_path / "h" / "queue", os.O_RDWR)
    try:
        fcntl.flock(line, fcntl.LOCK_EX)
        with pytest.raises(_EnoughError), limit.slot(never):
            pass
    finally:
        os.close(line)
    with limit.slot(never):
        pass


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ConnectionLimitError),
        HostLimit(tmp_path / "file" / "h", 1).slot(never),
    ):
        pass


def test_which_limit_a_host_has(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)

    def limit(connections: int, streams: int) -> int:
        limit = hosts.connection_limit("h", connections, streams)
        assert limit is not None
        return limit.connections

    assert [limit(0, 2), limit(0, 9), limit(1, 9), limit(7, 2)] == [4, 9, 1, 7]
    several = hosts.connection_limit("h", 0, 8, 4)
    assert several is not None
    assert several.connections == 16, "for streams that have four each"
    assert hosts.connection_limit("", 1, 1) is None
    assert Hosts().connection_limit("h", 1, 1) is None


def test_one_host_in_any_spelling_has_one_limit(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    one, other = (
        hosts.connection_limit("Mirror.Example", 1, 1),
        hosts.connection_limit("mirror.example", 1, 1),
    )
    assert one is not None
    assert other is not None
    with one.slot(never), pytest.raises(_EnoughError), other.slot(never):
        pass
