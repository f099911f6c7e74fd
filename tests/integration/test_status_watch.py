"""`status` on a real terminal: what it shows, how it ends, what it leaves behind."""

import os
import re
import signal
from functools import partial
from io import StringIO
from subprocess import PIPE

import pytest
from rich.console import Console

from huai_client.config import load as config
from huai_program.live_view import Row, Table
from tests.support.prepared import CLIENT, SERVER
from tests.support.processes import until
from tests.support.terminal import SECONDS, Terminal
from tests.support.terminal import terminal as on_terminal
from tests.support.upstream import Downstream, Site, Upstream

terminal = partial(on_terminal, stderr=PIPE)


def ended(screen: Terminal) -> int:
    """Its exit code, when the screen is as it was."""
    code = screen.ended()
    assert screen.read().endswith("\x1b[?1049l\x1b[?25h")
    return code


@pytest.fixture
def down(place: Site, up: Upstream) -> Downstream:
    return place.downstream(up)


def test_it_follows_a_sync_and_ends_at_q(down: Downstream) -> None:
    with terminal(CLIENT, "--root", str(down.root), "status", "--watch") as screen:
        assert re.search(r"STATE +MODULE +SERIAL", screen.until("never synced"))
        assert down.sync().code == 0
        assert re.search(rf"in step as of \d+s ago +{down.name} +1 .* 30 B", screen.until("30 B"))
        os.write(screen.keys, b"xq")
        assert ended(screen) == 0


def test_it_follows_a_commit_and_ends_at_control_c(up: Upstream) -> None:
    with terminal(SERVER, "--root", str(up.root), "status", up.name, "--watch") as screen:
        assert up.name in screen.until("SERIAL")
        for number in range(3):
            up.put(b"more%d" % number, b"1")
        counts = up.commit().head.info.counts
        assert counts.added == 3
        screen.until(f"+3 -0 ~{counts.changed}")
        screen.process.send_signal(signal.SIGINT)
        assert ended(screen) == 130


def test_a_signal_and_a_terminal_that_goes_away_end_it(up: Upstream) -> None:
    words = ("--root", str(up.root), "status", up.name, "--watch")
    with terminal(SERVER, *words) as screen:
        screen.until(up.name)
        screen.process.terminate()
        assert ended(screen) == 143
    with terminal(SERVER, *words) as screen:
        screen.until(up.name)
        os.write(screen.keys, b"\x04")
        assert ended(screen) == 0


def test_without_watch_the_table_is_printed_once(up: Upstream, down: Downstream) -> None:
    down.configure(url="http://127.0.0.1:1")
    assert down.sync().code != 0
    for program, root, state in ((CLIENT, down.root, "last run failed"), (SERVER, up.root, "comm")):
        with terminal(program, "--root", str(root), "status", up.name) as screen:
            assert screen.process.wait(SECONDS) == 0
            lines = screen.until("SERIAL").splitlines()
            assert re.match("STATE +MODULE +SERIAL", lines[0])
            assert state in lines[1]
            details = f"{down.name}: {down.dest}: never synced"
            assert (details in "".join(lines)) == (program is CLIENT)


def test_a_narrow_terminal_keeps_the_state() -> None:
    rows = [
        Row(("last run failed (10: no route)", "debian", "5 B"), needs_attention=True),
        Row(("ok", "a", "-")),
    ]
    table = Table(("STATE", "MODULE", "SIZE"), rows)
    for width, most, lines in (
        (40, 9, ["STATE MODULE SIZE", "last run failed (10: no r… debian 5 B", "ok a -"]),
        (28, 9, ["STATE MODULE", "last run failed (10… debian", "ok a"]),
        (99, 2, ["STATE MODULE SIZE", "and 2 more"]),
    ):
        file = StringIO()
        console = Console(width=width, file=file)
        console.print(table.columns(console, most))
        assert [" ".join(line.split()) for line in file.getvalue().splitlines()] == lines


def test_a_wrong_configuration_is_shown_until_it_is_right(down: Downstream) -> None:
    file = down.root / "client.toml"
    right = file.read_text()
    with terminal(CLIENT, "--root", str(down.root), "status", "--watch") as screen:
        screen.until("never synced")
        file.write_text(right + "\n[nonsense]\n")
        screen.until("unknown key 'nonsense'")
        file.write_text(right)
        times = screen.until(down.name).count(down.name)
        until(lambda: screen.read().count(down.name) > times)


def test_more_modules_than_lines_are_counted(down: Downstream) -> None:
    module = config.load(down.root).module(down.name)
    for number in range(9):
        config.add_module(down.root, f"more{number}", module)
    with terminal(CLIENT, "--root", str(down.root), "status", "--watch") as screen:
        assert "more8" not in screen.until("and 6 more")


def test_without_a_terminal_it_is_refused(down: Downstream) -> None:
    for options in ((), ("--json",)):
        refused = down.run("status", "--watch", *options)
        assert (refused.code, "--watch" in refused.err) == (1, True), options
