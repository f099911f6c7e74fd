"""Output that cannot be written changes no work, and of a good run only the exit code."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from huai_schema.errors import ExitCode
from tests.support.processes import run_program
from tests.support.upstream import CLIENT, ENVIRONMENT, SERVER, Downstream, Pair, Site, assert_equal

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


@pytest.mark.parametrize(("streams", "form"), STREAMS)
def test_a_sync_is_done_though_its_output_is_lost(
    pair: Pair, lost: Lost, streams: dict[str, bool], form: tuple[str, ...]
) -> None:
    up, down = pair
    code, out, err = lost.run(*client(down, "sync", up.name, *form), **streams)
    written = form and "out" not in streams  # JSON goes to standard output, and nothing else
    assert code == (0 if written else lost.code)
    assert is_plain(out + err)
    assert_equal(up, down)
    assert down.run("log", up.name, "--json").events("run")[-1]["outcome"] == "OK"


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("program", "module"),
    [
        ("huai_client", "click"),
        ("huai_client", "huai_client.cli.commands.sync"),
        ("huai_server", "click"),
    ],
)
def test_a_signal_while_the_program_is_loaded_ends_it_quietly(
    tmp_path: Path, program: str, module: str, number: signal.Signals
) -> None:
    script = INTERRUPTED.format(module=module, signal=number.name, program=program)
    command = [sys.executable, "-c", script, "--root", str(tmp_path), "sync", "--all"]
    done = run_program(*command, env=ENVIRONMENT)
    assert done.returncode == 128 + number
    assert "Traceback" not in done.stderr
