"""Several modules in one call: each for itself, told apart, and ended together."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from huai_client.config import load as client_config
from huai_client.state.paths import module_places
from huai_client.state.state import load
from tests.support.processes import children, is_running, run_program, until
from tests.support.upstream import ENVIRONMENT, SECONDS, Ended, Site, Upstream, assert_equal, ended


def grown(place: Site, files: int) -> Upstream:
    up = place.upstream()
    up.many(b"folder", files)
    up.commit()
    return up


class Mirror:
    """A client that copies several modules of a site."""

    def __init__(self, place: Site, number: int) -> None:
        self.ups = [grown(place, 3 + index) for index in range(number)]
        self.downs = [place.downstream(up) for up in self.ups]
        self.root = self.downs[0].root
        for down in self.downs[1:]:
            module = client_config.load(down.root).module(down.name)
            client_config.add_module(self.root, down.name, module)
            down.root = self.root
        self.names = [up.name for up in self.ups]

    def spawn(self, *arguments: str) -> subprocess.Popen[str]:
        return self.downs[0].spawn("sync", *arguments)

    def sync(self, *arguments: str) -> Ended:
        return ended(self.spawn(*arguments))

    def assert_equal(self) -> None:
        for up, down in zip(self.ups, self.downs, strict=True):
            assert_equal(up, down)


@pytest.fixture
def mirror(place: Site) -> Mirror:
    return Mirror(place, 3)


def test_the_named_ones_are_synced_and_no_other(mirror: Mirror) -> None:
    first, left_out, last = mirror.names
    assert mirror.sync(first, "nonesuch").code == 45
    assert not module_places(mirror.root, first).folder.exists()
    assert mirror.sync(last, first).code == 0
    assert load(module_places(mirror.root, first).state).applied
    assert load(module_places(mirror.root, last).state).applied
    assert not module_places(mirror.root, left_out).folder.exists()
    for arguments in ([], ["--all", "m1"]):
        done = mirror.sync(*arguments)
        assert (done.code, "--all" in done.err) == (1, True)
    for name in mirror.names:
        client_config.remove_module(mirror.root, name)
    done = mirror.sync("--all", "--json")
    assert (done.code, [event["type"] for event in done.events()]) == (40, ["error"])


def test_all_modules_are_synced_and_each_line_names_its_module(mirror: Mirror) -> None:
    done = mirror.sync("--all", "--dry-run")
    assert done.code == 0
    for down in mirror.downs:
        assert f"{down.name}: fetch      folder/0" in done.out
        assert os.listdir(down.dest) == []
    done = mirror.sync("--all", "--parallel", "3")
    assert done.code == 0, done
    assert "3 modules ended well" in done.err
    mirror.assert_equal()
    lines = (done.out + done.err).splitlines()
    own = [line for line in lines if line.partition(": ")[0] not in mirror.names]
    assert [line.partition(": ")[0] for line in own] == ["huai-client"]
    for down in mirror.downs:
        assert f"{down.name}: Total file size: {down.state.total_bytes} bytes" in lines


def test_json_lines_carry_their_module_and_quiet_prints_nothing(mirror: Mirror) -> None:
    assert mirror.sync("--all", "-q") == (0, "", "")
    done = mirror.sync("--all", "--json", "--parallel", "3")
    assert (done.code, done.err) == (0, "")
    *events, last = done.events()
    assert {event["module"] for event in events} == set(mirror.names)
    for name in mirror.names:
        (end,) = [event for event in events if (event["module"], event["type"]) == (name, "ended")]
        assert (end["code"], end["name"]) == (0, "OK")
    assert (last["type"], last["modules"], last["failed"]) == ("all-ended", 3, [])


def test_one_that_fails_does_not_disturb_the_others(mirror: Mirror) -> None:
    mirror.downs[0].configure(url="http://127.0.0.1:9")
    done = mirror.sync("--all", "--json")
    assert done.code == 10
    (error,) = done.events("error")
    assert (error["module"], error["code"]) == (mirror.names[0], 10)
    (last,) = done.events("all-ended")
    assert (last["failed"], last["code"], last["name"]) == ([mirror.names[0]], 10, "NETWORK")
    assert f"{mirror.names[0]}: " in done.err
    for up, down in list(zip(mirror.ups, mirror.downs, strict=True))[1:]:
        assert_equal(up, down)


def test_the_worst_code_is_the_code_of_all(mirror: Mirror, tmp_path: Path) -> None:
    mirror.downs[0].configure(url="http://127.0.0.1:9")
    mirror.downs[2].configure(dest=str(tmp_path / "missing"))
    done = mirror.sync("--all")
    assert done.code == 52
    assert "2 of 3 modules failed" in done.err
    assert_equal(mirror.ups[1], mirror.downs[1])


# ------------------------------------------------------------ processes


@contextmanager
def silence() -> Iterator[tuple[socket.socket, str]]:
    """An upstream that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS)
        yield server, f"http://127.0.0.1:{server.getsockname()[1]}"


def holder(mirror: Mirror, name: str) -> int:
    """The process that syncs a module; 0: none."""
    lock = module_places(mirror.root, name).lock
    return int(lock.read_bytes() or b"0") if lock.exists() else 0


@contextmanager
def stuck(mirror: Mirror, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A run of all modules, of which two wait for an answer; and their processes."""
    with silence() as (server, url):
        for down in mirror.downs[:2]:
            down.configure(url=url)
        process = mirror.spawn("--all", *arguments)
        try:
            connections = [server.accept()[0] for _ in range(2)]
            yield process, [holder(mirror, name) for name in mirror.names[:2]]
            for connection in connections:
                connection.close()
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()


def test_a_crash_of_one_disturbs_no_other(mirror: Mirror) -> None:
    with stuck(mirror, "--json", "--parallel", "3") as (process, (first, second)):
        assert len({first, second, process.pid}) == 3
        os.kill(first, signal.SIGKILL)
        os.kill(second, signal.SIGTERM)
        done = ended(process)
    codes = {event["module"]: event["code"] for event in done.events("ended")}
    assert codes == dict(zip(mirror.names, [128 + 9, 143, 0], strict=True))
    assert done.code == 137
    assert_equal(mirror.ups[2], mirror.downs[2])


UNFORESEEN = """
from huai_client.cli.main import main
from huai_client.sync.run import Run
sync = Run.sync
def unforeseen(run, *arguments, **options):
    if run._mirror.name == {name!r}:
        raise RuntimeError("unforeseen")
    return sync(run, *arguments, **options)
Run.sync = unforeseen
main()
"""


def test_an_unforeseen_error_of_one_is_shown_and_disturbs_no_other(mirror: Mirror) -> None:
    code = UNFORESEEN.format(name=mirror.names[0])
    command = [sys.executable, "-c", code, "--root", str(mirror.root), "sync", "--all", "--json"]
    done = run_program(*command, env=ENVIRONMENT)
    lines = [line for line in done.stderr.splitlines() if line.startswith(mirror.names[0])]
    assert lines[-1] == f"{mirror.names[0]}: RuntimeError: unforeseen"
    ends = Ended(done.returncode, done.stdout, "").events("ended")
    codes = {event["module"]: (event["code"], event["name"]) for event in ends}
    assert codes.pop(mirror.names[0]) == (1, None)
    assert set(codes.values()) == {(0, "OK")}
    assert done.returncode == 1
    for up, down in list(zip(mirror.ups, mirror.downs, strict=True))[1:]:
        assert_equal(up, down)


def test_no_more_at_a_time_than_asked_for(mirror: Mirror) -> None:
    with stuck(mirror, "--parallel", "2") as (process, two):
        assert sorted(children(process.pid)) == sorted(two)
        os.kill(two[0], signal.SIGKILL)
        until(lambda: mirror.downs[2].state.applied is not None)
        until(lambda: children(process.pid) == [two[1]])
        os.kill(two[1], signal.SIGKILL)
        assert ended(process).code == 137


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
def test_a_signal_ends_all(mirror: Mirror, number: signal.Signals, code: int) -> None:
    with stuck(mirror, "--json") as (process, two):
        process.send_signal(number)
        done = ended(process)
    assert done.code == code
    assert not any(map(is_running, two))
    assert [event["code"] for event in done.events("ended")] == [143, 143]
    errors = [(event.get("module"), event["code"]) for event in done.events("error")]
    assert sorted(errors[:2]) == [(name, 143) for name in mirror.names[:2]]
    assert errors[2:] == [(None, code)]
    assert mirror.downs[2].state.applied is None


def test_children_end_with_their_parent(mirror: Mirror) -> None:
    with stuck(mirror) as (process, two):
        process.kill()
        process.communicate()
        until(lambda: not any(map(is_running, two)))


def test_a_reader_that_goes_away_ends_no_sync(mirror: Mirror) -> None:
    with stuck(mirror, "--parallel", "3", "--json") as (process, two):
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["v"] == 1
        process.stdout.close()
        os.kill(two[0], signal.SIGKILL)  # which is reported, and not read
        until(lambda: not is_running(two[0]))
        assert is_running(two[1])
        assert process.poll() is None
        os.kill(two[1], signal.SIGKILL)
        assert process.wait(SECONDS) == 128 + signal.SIGKILL
        assert process.stderr is not None
        process.stderr.close()


def test_the_time_is_that_of_the_whole_call(mirror: Mirror) -> None:
    with silence() as (_, url):
        mirror.downs[0].configure(url=url)
        done = mirror.sync("--all", "--parallel", "1", "--max-time", "1s", "--json")
    codes = {event["module"]: event["code"] for event in done.events("ended")}
    assert codes == dict.fromkeys(mirror.names, 30)
    assert done.code == 30
    assert mirror.downs[2].state.applied is None


def test_a_lock_is_waited_for(place: Site, mirror: Mirror) -> None:
    with stuck(mirror) as (process, _):
        busy = mirror.sync("--json", *mirror.names[:2])
        assert busy.code == 43
        for down in mirror.downs[:2]:
            down.configure(url=place.url)
        waits = mirror.spawn("--wait", "60", *mirror.names)
        process.terminate()
        assert ended(process).code == 143
    assert ended(waits).code == 0
    mirror.assert_equal()
