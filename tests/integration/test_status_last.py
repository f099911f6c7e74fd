"""`status` shows the last check, the last result and since when runs fail; and other words."""

import sys

from huai_program.humanize import moment
from tests.support.processes import run_program
from tests.support.upstream import ENVIRONMENT, SERVER, Site


def test_the_last_check_and_since_when_it_fails(place: Site) -> None:
    up = place.upstream()
    up.put(b"a")
    up.commit()
    down = place.downstream(up)
    before = down.run("status", "--json").events("module")[0]
    assert [before[key] for key in ("last_check", "last_code", "failing_since")] == [None] * 3
    down.synced()
    down.synced()
    good = down.run("status", "--json").events("module")[0]
    assert (good["last_code"], good["last_reason"], good["failing_since"]) == (0, "", None)
    assert good["last_check"] >= good["time"]
    down.configure(url="http://127.0.0.1:1")
    for _ in range(2):
        assert down.sync().code == 10
    bad = down.run("status", "--json").events("module")[0]
    assert bad["last_check"] == good["last_check"]
    assert bad["last_code"] == 10
    assert bad["failing_since"] <= bad["last_ended"]
    done = down.run("status")
    assert done.code == 0
    assert "failing since" in done.out
    assert "exit code 10" in done.out


def test_the_server_shows_when_it_was_committed(place: Site) -> None:
    up = place.upstream()
    up.put(b"a")
    up.commit()
    done = run_program(*SERVER, "--root", up.root, "status", up.name, env=ENVIRONMENT, check=True)
    assert "committed 20" in done.stdout


def test_a_date_of_any_year_is_shown() -> None:
    assert moment(1 << 62) == f"{1 << 62:,} s after 1970"
    assert moment(-(1 << 62)).endswith("after 1970")


def test_serving_without_its_libraries_says_what_to_install(place: Site) -> None:
    hidden = (
        "import sys; sys.modules['uvicorn'] = None; from huai_server.cli.main import main; main()"
    )
    root = place.folder / "server"
    done = run_program(sys.executable, "-c", hidden, "--root", root, "serve", env=ENVIRONMENT)
    assert done.returncode == 51
    assert "requirements/server.lock" in done.stderr


def test_a_misspelt_command_is_answered_with_its_neighbour(place: Site) -> None:
    down = place.downstream(place.upstream())
    assert "did you mean 'sync'?" in down.run("synk").err
    errors = down.run("sync", "--al").err
    assert "--all" in errors
    assert "sync --help" in errors
