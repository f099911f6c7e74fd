"""Output that cannot be written changes no work; a log file may be rotated at any moment."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import click
import pytest

from docs.man.pages import command_line
from huai_schema.errors import ExitCode
from tests.support.processes import children, run_program
from tests.support.upstream import (
    CLIENT,
    ENVIRONMENT,
    SECONDS,
    SERVER,
    Downstream,
    Pair,
    Site,
    Upstream,
    assert_equal,
    ended,
)

FULL = Path("/dev/full")


@contextmanager
def unread() -> Iterator[int]:
    """A pipe without a reader."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)


@contextmanager
def full() -> Iterator[int]:
    """A disk that is full."""
    handle = os.open(FULL, os.O_WRONLY)
    try:
        yield handle
    finally:
        os.close(handle)


class Lost:
    """A stream that cannot be written, and what becomes of a run that went well."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.code = ExitCode.UNREAD if kind == "unread" else ExitCode.UNWRITTEN

    def run(self, *command: str, out: bool = False, err: bool = False) -> tuple[int, str, str]:
        """`command` with these streams lost: its exit code and what came by the others."""
        opened = full() if self.kind == "full" else unread()
        closes = "".join(f" {n}>&-" for n, lost in ((1, out), (2, err)) if lost)
        shell = ["sh", "-c", f'exec "$@"{closes if self.kind == "closed" else ""}', "sh"]
        with opened as handle:
            lost = None if self.kind == "closed" else handle
            done = run_program(
                *shell,
                *command,
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=lost if out and lost else subprocess.PIPE,
                stderr=lost if err and lost else subprocess.PIPE,
            )
        return done.returncode, done.stdout or "", done.stderr or ""


@pytest.fixture(params=["full", "unread", "closed"])
def lost(request: pytest.FixtureRequest) -> Lost:
    return Lost(request.param)


STREAMS = [
    ({"out": True}, ()),
    ({"out": True, "err": True}, ("--json",)),
    ({"err": True}, ()),
    ({"err": True}, ("--json",)),
]
"""The streams that are lost, and options."""


@pytest.fixture(name="pair")
def changed_pair(place: Site) -> Pair:
    """A module with something to sync."""
    up = place.upstream()
    up.many(b"a", 30)
    up.commit()
    return up, place.downstream(up)


def client(down: Downstream, command: str, *options: str) -> tuple[str, ...]:
    """Return the command line of a client."""
    return (*CLIENT, "--root", str(down.root), command, *options)


def is_plain(text: str) -> bool:
    return "Traceback" not in text and "Exception" not in text and "Broken pipe" not in text


def test_a_sync_is_done_though_its_output_is_lost(pair: Pair, lost: Lost) -> None:
    up, down = pair
    for number, (streams, form) in enumerate(STREAMS):
        up.put(b"new", b"%d" % number)
        up.commit()
        code, out, err = lost.run(*client(down, "sync", up.name, *form), **streams)
        written = form and "out" not in streams  # JSON goes to standard output, and nothing else
        assert code == (0 if written else lost.code), (streams, form)
        assert is_plain(out + err)
        assert_equal(up, down)
        newest = down.run("log", up.name, "--json").events("run")[0]
        assert (newest["outcome"], newest["to_serial"]) == ("OK", up.commit().head.info.serial)


def test_all_modules_are_synced_though_their_output_is_lost(place: Site, lost: Lost) -> None:
    ups = [place.upstream() for _ in range(3)]
    down = place.downstream(ups[0])
    downs = [down]
    for number, up in enumerate(ups):
        up.put(b"file", b"%d" % number)
        up.commit()
        if number:
            dest = down.dest.with_name(f"{down.dest.name}-{number}")
            dest.mkdir()
            assert down.run("add", up.name, place.url, str(dest)).code == 0
            downs.append(Downstream(up.name, dest, down.root))
    code, out, err = lost.run(*client(down, "sync", "--all", "--json"), out=True, err=True)
    assert code == lost.code
    assert is_plain(out + err)
    for up, down in zip(ups, downs, strict=True):
        assert_equal(up, down)


def test_a_repair_is_done_though_its_output_is_lost(pair: Pair, lost: Lost) -> None:
    """A run that fails keeps its code."""
    up, down = pair
    down.synced()
    for number in range(30):
        (down.dest / "a" / f"unknown{number}").touch()
    (down.dest / "a" / "3").unlink()
    for words, expected in (
        (("verify", up.name), ExitCode.DIFFERS),
        (("sync", "nosuch", "--json"), ExitCode.UNKNOWN_MODULE),
        (("nosuch",), ExitCode.USAGE),
    ):
        assert lost.run(*client(down, *words), out=True, err=True)[0] == expected
    options = ("--repair", "--delete-extraneous")
    code, _, err = lost.run(*client(down, "verify", up.name, *options), out=True)
    assert code == lost.code
    assert is_plain(err)
    assert_equal(up, down)


@pytest.mark.parametrize("command", ["plan", "status"])
def test_a_command_that_only_looks_fails_if_its_output_is_lost(
    pair: Pair, lost: Lost, command: str
) -> None:
    up, down = pair
    down.synced()
    up.put(b"a/3", b"other")
    up.commit()
    assert down.plan()
    code, _, err = lost.run(*client(down, command, up.name), out=True)
    ended_by_pipe = lost.kind == "unread" and command != "plan"
    assert code == (-signal.SIGPIPE if ended_by_pipe else lost.code)
    assert is_plain(err)


def test_a_commit_is_made_though_its_output_is_lost(place: Site, lost: Lost) -> None:
    up = place.upstream()
    up.put(b"file", b"text")
    code, _, err = lost.run(*SERVER, "--root", str(up.root), "commit", up.name, out=True)
    assert code == lost.code
    assert is_plain(err)
    down = place.downstream(up)
    down.synced()
    assert_equal(up, down)


def test_a_stream_that_is_closed_gets_no_file_of_ours(pair: Pair) -> None:
    # The first file that is opened gets the lowest number that is free.
    up, down = pair
    code, _, _ = Lost("closed").run(*client(down, "sync", up.name), out=True, err=True)
    assert code == ExitCode.UNWRITTEN
    for path in [*down.root.rglob("*"), *down.dest.rglob("*")]:
        assert not path.is_file() or b"total file size" not in path.read_bytes().lower(), path


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_names_that_the_output_cannot_show_are_escaped(pair: Pair, encoding: str) -> None:
    up, down = pair
    up.put("grüße-猫".encode())
    up.commit()
    environment = {"PYTHONUTF8": "0", "PYTHONIOENCODING": encoding, "PYTHONCOERCECLOCALE": "0"}
    for command, *options in (("plan", "--list"), ("sync",), ("diff",)):
        words = client(down, command, up.name, *options)
        done = run_program(*words, env={**ENVIRONMENT, **environment}, encoding=encoding)
        assert done.returncode == 0 or command == "diff", done
        assert "Traceback" not in done.stderr
        assert command != "plan" or "-\\u732b" in done.stdout


INTERRUPTED = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.{signal})
sys.meta_path.insert(0, Interrupt())
from {program}.__main__ import main
sys.argv = ["huai", *sys.argv[1:]]
main()
"""


def test_a_signal_while_the_program_is_loaded_ends_it_quietly(tmp_path: Path) -> None:
    for number, (program, module) in product(
        (signal.SIGINT, signal.SIGTERM),
        (
            ("huai_client", "click"),
            ("huai_client", "huai_client.cli.commands.sync"),
            ("huai_server", "click"),
        ),
    ):
        script = INTERRUPTED.format(module=module, signal=number.name, program=program)
        command = [sys.executable, "-c", script, "--root", str(tmp_path), "sync", "--all"]
        done = run_program(*command, env=ENVIRONMENT)
        assert done.returncode == 128 + number
        assert "Traceback" not in done.stderr


TOP = Path(__file__).parents[2]
LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}) \[(\d+)\] (\w+): (.+)")
SAMPLE = TOP / "hooks" / "logrotate.d" / "huai"


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
    assert first.startswith("serial 1: 3 files to fetch")
    assert re.fullmatch(r"received \d+ bytes, total file size 30 bytes", last)
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
