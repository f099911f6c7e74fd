"""`huai-client add` writes nothing that a sync would refuse, and errors name module and key."""

from pathlib import Path

import pytest

from huai_schema.errors import ExitCode
from tests.support.scripted_http import Reply, scripted
from tests.support.upstream import Downstream, Site


@pytest.fixture
def down(tmp_path: Path) -> Downstream:
    """A client without modules."""
    root = tmp_path / "root"
    return Downstream("m", tmp_path / "dest", root)


def test_a_mistake_is_refused_and_nothing_is_written(down: Downstream) -> None:
    """One of each kind; tests/unit/client/config/test_load.py has the tables."""
    mistakes = {
        ("m", "ftp://user:secret@h/", "/srv/m"): ("[modules.m]: url: ", "did you mean http://h:"),
        ("m", "http://h", ""): ("[modules.m]: dest: ", "variables of the shell"),
        ("m", "http://h", f"{down.root}/modules/m"): (
            "[modules.m]: dest: ",
            "must not contain each other",
        ),
        ("../x", "http://h", "/srv/m"): ("cannot be a module's name",),
        ("m", "http://h", "/srv/m", "--other-url="): ("url: the address is empty",),
    }
    for (name, url, dest, *options), words in mistakes.items():
        done = down.run("add", *options, "--no-check", "--", name, url, dest)
        assert done.code == ExitCode.CONFIG, done
        assert [word for word in words if word not in done.err] == [], done.err
        assert not (down.root / "client.toml").exists()
        assert "secret" not in done.err
        assert "metadata is damaged" not in done.err


def test_a_relative_dest_is_made_absolute(
    down: Downstream, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    added = down.run("add", "--no-check", "m", "http://h", "some/../dest", "--json")
    assert added.events("added")[0]["dest"] == str(down.dest)


def test_a_module_that_the_upstream_lacks_causes_a_warning(place: Site, down: Downstream) -> None:
    up = place.upstream()
    up.put(b"a")
    up.commit()
    hint = f"did you mean '{up.name}'?"
    done = down.run("add", f"{up.name}x", place.url, str(down.dest))
    assert (done.code, hint in done.err) == (0, True), done
    done = down.run("add", "other", place.url, str(down.dest / "x"), "--upstream-name", up.name)
    assert "warning" not in done.err
    done = down.run("add", "gone", "http://127.0.0.1:1", f"{down.dest}2", "--json")
    assert done.code == 0
    assert "Connection refused" in done.events("added")[0]["warning"]
    done = place.downstream(up, upstream_name=f"{up.name}x").sync()
    assert (done.code, hint in done.err) == (ExitCode.UNKNOWN_MODULE, True), done


def test_the_modules_of_an_upstream_are_listed(place: Site, down: Downstream) -> None:
    up, empty = place.upstream(), place.upstream()
    up.many(b"a", 3)
    up.commit()
    done = down.run("modules", place.url, "--json")
    modules = {event["name"]: event for event in done.events("served")}
    assert modules[up.name]["serial"] == 1
    assert modules[up.name]["entries"] == 5
    assert modules[empty.name]["serial"] is None
    assert f"{up.name}: serial 1, 5 entries" in down.run("modules", f"{place.url}/").out
    for url in (f"{place.url}/git/{up.name}.git", place.url):
        assert down.run("modules", url).code == 0
    assert down.run("modules", "rsync://h/m").code == ExitCode.NETWORK
    assert down.run("modules", place.content_url.replace("rsync", "http")).code != 0


def test_tls_where_the_server_has_none_has_a_hint(place: Site) -> None:
    down = place.downstream(place.upstream(), url=place.url.replace("http:", "https:"))
    done = down.sync()
    assert done.code == ExitCode.NETWORK
    assert f"did you mean {place.url}/" in done.err
    assert "_ssl.c" not in done.err


def test_a_mistake_in_the_file_is_found_by_a_poll_with_nothing_new(place: Site) -> None:
    """By every command; tests/unit/client/config/test_load.py has the mistakes."""
    up = place.upstream()
    up.put(b"a")
    down = place.synced_downstream(up)
    file = down.root / "client.toml"
    text = file.read_text(encoding="utf-8")
    for line, reason, hint in (
        ('trash = "7x"', "trash: '7x' is not a duration", 'trash = "7d"'),
        ('filter = ["nonsense"]', "filter: ", "rule"),
        ('rsync_options = ["--bogus"]', "rsync_options: rsync: --bogus: unknown", "rsync(1)"),
    ):
        file.write_text(f"{text}{line}\n", encoding="utf-8")
        for command in ("sync", "plan", "doctor"):
            done = down.run(command, up.name)
            assert done.code == ExitCode.CONFIG, done
            assert f"[modules.{up.name}]: {reason}" in done.err + done.out
            assert hint in done.err + done.out
            assert "hostile" not in done.err


def test_all_of_no_modules_is_no_success(down: Downstream) -> None:
    for command in (("sync", "--all"), ("status",)):
        done = down.run(*command)
        assert done.code == ExitCode.CONFIG
        assert "client.toml" in done.err
        assert "huai-client add NAME URL DEST" in done.err


def test_a_dest_that_is_not_a_directory_is_refused_as_by_a_sync(down: Downstream) -> None:
    file, link = down.dest.with_name("file"), down.dest.with_name("link")
    file.touch()
    down.dest.mkdir()
    link.symlink_to(down.dest)
    for dest, reason in ((file, "is not a directory"), (link, "is a symlink")):
        done = down.run("add", "--no-check", "m", "http://h", str(dest))
        assert (done.code, reason in done.err) == (ExitCode.DESTINATION, True), done
        assert not (down.root / "client.toml").exists()


def test_a_missing_directory_causes_a_warning(down: Downstream) -> None:
    done = down.run("add", "--no-check", "m", "http://h", str(down.dest))
    assert (done.code, f"mkdir -p {down.dest}" in done.err) == (0, True), done
    other = down.dest.with_name("other")
    done = down.run("add", "--no-check", "--json", "n", "http://h", str(other))
    assert "does not exist" in done.events("added")[0]["warning"]
    existing = down.dest.with_name("existing")
    existing.mkdir()
    assert down.run("add", "--no-check", "o", "http://h", str(existing)).err == ""


def test_the_upstream_is_asked_unless_told_otherwise(down: Downstream) -> None:
    down.dest.mkdir()
    with scripted(lambda _: Reply("404 Not Found")) as upstream:
        added = down.run("add", "--no-check", "quiet", upstream.url, f"{down.dest}/q")
        assert (added.code, upstream.questions) == (0, [])
        assert "warning: " not in added.err
        for name, options in (("usual", ()), ("asked", ("--check",))):
            added = down.run("add", *options, name, upstream.url, f"{down.dest}/{name}")
            assert added.code == 0
            assert f"huai-client: {name}: warning: {upstream.url}" in added.err
            assert "check the URL and the module's name" in added.err
            assert upstream.questions
            upstream.questions.clear()
    added = down.run("add", "--check", "--json", "gone", upstream.url, f"{down.dest}/gone")
    assert added.code == 0
    assert "Connection refused" in added.events("added")[0]["warning"]
