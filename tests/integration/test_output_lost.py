"""Output that cannot be written changes no work, and of a good run only the exit code."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from huai_schema.errors import ExitCode
from tests.support.upstream import (
    CLIENT,
    ENVIRONMENT,
    SECONDS,
    SERVER,
    Downstream,
    Site,
    Upstream,
    assert_equal,
)

FULL = Path("/dev/full")


@contextmanager
def unread() -> Iterator[int]:
    """A pipe that nobody reads any more."""
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
            done = subprocess.run(
                [*shell, *command],
                stdin=subprocess.DEVNULL,
                stdout=lost if out and lost else subprocess.PIPE,
                stderr=lost if err and lost else subprocess.PIPE,
                env=ENVIRONMENT,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        return done.returncode, done.stdout or "", done.stderr or ""


@pytest.fixture(params=["full", "unread", "closed"])
def lost(request: pytest.FixtureRequest) -> Lost:
    return Lost(request.param)


STREAMS = [{"out": True}, {"err": True}, {"out": True, "err": True}]
FORMS = [(), ("--json",)]


def changed(place: Site) -> tuple[Upstream, Downstream]:
    """A module with something to sync."""
    up = place.upstream()
    up.many(b"a", 30)
    up.commit()
    return up, place.downstream(up)


def said_nothing_odd(text: str) -> bool:
    return "Traceback" not in text and "Exception" not in text and "Broken pipe" not in text


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("streams", STREAMS)
def test_a_sync_is_done_whoever_hears_of_it(
    place: Site, lost: Lost, streams: dict[str, bool], form: tuple[str, ...]
) -> None:
    up, down = changed(place)
    code, out, err = lost.run(*CLIENT, "--root", str(down.root), "sync", up.name, *form, **streams)
    told_all = form and "out" not in streams  # JSON goes to standard output, and nothing else
    assert code == (0 if told_all else lost.code)
    assert said_nothing_odd(out + err)
    assert_equal(up, down)
    assert [event["outcome"] for event in down.run("log", up.name, "--json").events("run")][-1] == (
        "OK"
    )


@pytest.mark.parametrize("form", FORMS)
def test_all_modules_are_synced_whoever_hears_of_it(
    place: Site, lost: Lost, form: tuple[str, ...]
) -> None:
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
    code, out, err = lost.run(
        *CLIENT, "--root", str(down.root), "sync", "--all", *form, out=True, err=True
    )
    assert code == lost.code
    assert said_nothing_odd(out + err)
    for up, each in zip(ups, downs, strict=True):
        assert_equal(up, each)


@pytest.mark.parametrize("form", FORMS)
def test_a_repair_is_done_whoever_hears_of_it(
    place: Site, lost: Lost, form: tuple[str, ...]
) -> None:
    up, down = changed(place)
    down.synced()
    for number in range(30):
        (down.dest / "a" / f"unknown{number}").touch()
    (down.dest / "a" / "3").unlink()
    code, _, err = lost.run(
        *CLIENT,
        *("--root", str(down.root), "verify", up.name, "--repair", "--delete-extraneous", *form),
        out=True,
    )
    assert code == lost.code
    assert said_nothing_odd(err)
    assert_equal(up, down)


def test_a_run_that_failed_keeps_its_code(place: Site, lost: Lost) -> None:
    up, down = changed(place)
    down.synced()
    (down.dest / "a" / "3").unlink()
    root = ("--root", str(down.root))
    both = {"out": True, "err": True}
    assert lost.run(*CLIENT, *root, "verify", up.name, **both)[0] == ExitCode.DIFFERS
    assert lost.run(*CLIENT, *root, "sync", "nosuch", **both)[0] == ExitCode.UNKNOWN_MODULE
    assert lost.run(*CLIENT, *root, "nosuch", **both)[0] == ExitCode.USAGE


@pytest.mark.parametrize("command", ["plan", "status", "log", "diff"])
def test_what_only_looks_says_that_it_was_not_heard(place: Site, lost: Lost, command: str) -> None:
    up, down = changed(place)
    down.synced()
    up.put(b"a/3", b"other")
    up.commit()
    assert down.plan()
    code, _, err = lost.run(*CLIENT, "--root", str(down.root), command, up.name, out=True)
    ended_by_pipe = lost.kind == "unread" and command != "plan"
    assert code == (-signal.SIGPIPE if ended_by_pipe else lost.code)
    assert said_nothing_odd(err)


@pytest.mark.parametrize("form", FORMS)
def test_a_commit_is_made_whoever_hears_of_it(
    place: Site, lost: Lost, form: tuple[str, ...]
) -> None:
    up = place.upstream()
    up.put(b"file", b"text")
    code, _, err = lost.run(*SERVER, "--root", str(up.root), "commit", up.name, *form, out=True)
    assert code == lost.code
    assert said_nothing_odd(err)
    down = place.downstream(up)
    down.synced()
    assert_equal(up, down)


def test_a_stream_that_is_closed_gets_no_file_of_ours(place: Site) -> None:
    # The first file that is opened gets the lowest number that is free.
    up, down = changed(place)
    code, _, _ = Lost("closed").run(
        *CLIENT, "--root", str(down.root), "sync", up.name, out=True, err=True
    )
    assert code == ExitCode.UNWRITTEN
    for path in [*down.root.rglob("*"), *down.dest.rglob("*")]:
        assert not path.is_file() or b"total file size" not in path.read_bytes().lower(), path


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_names_that_the_output_cannot_show_are_escaped(place: Site, encoding: str) -> None:
    up, down = changed(place)
    up.put("grüße-猫".encode())
    up.commit()
    environment = {"PYTHONUTF8": "0", "PYTHONIOENCODING": encoding, "PYTHONCOERCECLOCALE": "0"}
    for command, *options in (("plan", "--list"), ("sync",), ("diff",)):
        done = subprocess.run(
            [*CLIENT, "--root", str(down.root), command, up.name, *options],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**ENVIRONMENT, **environment},
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0 or command == "diff", done
        assert b"Traceback" not in done.stderr
        if command == "plan":
            assert b"-\\u732b" in done.stdout
        (done.stdout + done.stderr).decode(encoding)


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
    import sys

    script = INTERRUPTED.format(module=module, signal=number.name, program=program)
    done = subprocess.run(
        [sys.executable, "-c", script, "--root", str(tmp_path), *("sync", "--all")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=ENVIRONMENT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 128 + number
    assert "Traceback" not in done.stderr
