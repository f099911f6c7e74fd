"""`--log-file`: the messages of a run, for a later reader; rotated at any moment."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from docs.man.pages import command_line
from tests.support.processes import children
from tests.support.upstream import SECONDS, Downstream, Site, Upstream, ended

TOP = Path(__file__).parents[2]
LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}) \[(\d+)\] (\w+): (.+)")
SAMPLE = TOP / "hooks" / "logrotate.d" / "huai"


@pytest.fixture
def up(place: Site) -> Upstream:
    up = place.upstream()
    up.put(b"file", b"content")
    up.commit()
    return up


@pytest.fixture
def down(place: Site, up: Upstream) -> Downstream:
    return place.downstream(up)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "client.log"


def texts(log: Path, name: str) -> list[str]:
    """Return the messages of the lines, each of which has to be about that module."""
    matches = [LINE.fullmatch(line) for line in log.read_text().splitlines()]
    assert all(match and match[3] == name for match in matches)
    return [match[4] for match in matches if match]


@contextmanager
def waiting(down: Downstream, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A client in the middle of a request to an upstream that does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(SECONDS)
        down.configure(url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        process = down.spawn(*command)
        with silent.accept()[0]:
            yield process


def test_it_holds_what_a_quiet_run_did_not_say(up: Upstream, down: Downstream, log: Path) -> None:
    assert down.sync("-q", "--log-file", str(log)) == (0, "", "")
    first, *_, last = texts(log, up.name)
    assert first.startswith("serial 1: 1 file to fetch")
    assert re.fullmatch(r"received \d+ bytes, total file size 7 bytes", last)
    assert down.sync("--json", "--log-file", str(log)).code == 0
    assert texts(log, up.name)[-1] == "nothing new, serial 1"


def test_it_may_be_rotated_while_a_run_goes_on(up: Upstream, down: Downstream, log: Path) -> None:
    with waiting(down, "sync", up.name, "--log-file", str(log)) as process:
        old = log.rename(log.with_suffix(".1"))
        process.send_signal(signal.SIGTERM)
        assert ended(process).code == 143
    assert old.read_text() == ""
    assert texts(log, up.name) == ["terminated; the next run continues from here"]


def test_a_failure_is_in_it(up: Upstream, down: Downstream, log: Path) -> None:
    down.configure(url="http://127.0.0.1:9")
    assert down.sync("-q", "--log-file", str(log)).code == 10
    (line,) = texts(log, up.name)
    assert line.endswith("(exit code 10)")


def test_a_process_that_is_killed_is_in_it(up: Upstream, down: Downstream, log: Path) -> None:
    with waiting(down, "sync", "--all", "--log-file", str(log)) as process:
        (child,) = children(process.pid)
        os.kill(child, signal.SIGKILL)
        assert ended(process).code == 137
    assert texts(log, up.name) == ["137, it crashed"]


def test_a_verify_has_one_too(up: Upstream, down: Downstream, log: Path) -> None:
    assert down.verify("-q", "--log-file", str(log)).code == 47
    assert texts(log, up.name)[-1].endswith("(exit code 47)")
    down.synced()
    assert down.verify("-q", "--log-file", str(log)).code == 0
    assert "equals" in texts(log, up.name)[-1]


def test_one_that_cannot_be_written_is_refused_before_anything(down: Downstream, log: Path) -> None:
    refused = down.sync("--log-file", str(log / "no" / "folder"))
    assert (refused.code, down.state.applied) == (11, None)
    assert "folder" in refused.err


def test_the_sample_for_logrotate_calls_what_exists() -> None:
    text = SAMPLE.read_text()
    (call,) = re.findall(r"huai-client (sync .*--log-file) (\S+)", text)
    words, path = call[0].split(), Path(call[1])
    group = command_line("huai-client")
    assert isinstance(group, click.Group)
    command = group.get_command(click.Context(group), words[0])
    assert command is not None
    assert set(words[1:]) <= {option for parameter in command.params for option in parameter.opts}
    (pattern,) = re.findall(r"^(/\S+) \{$", text, re.MULTILINE)
    assert path.match(pattern)
    assert f"install -d -o huai -g huai -m 750 {path.parent}\n" in text
