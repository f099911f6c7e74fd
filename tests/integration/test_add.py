"""`huai-client add` writes nothing that a sync would refuse, and errors name module and key."""

from pathlib import Path
from typing import Any

import pytest

from huai_schema.errors import ExitCode
from tests.support.upstream import Downstream, Site

HTTP = "did you mean http://"


@pytest.fixture
def down(tmp_path: Path) -> Downstream:
    """A client without modules."""
    root = tmp_path / "root"
    return Downstream("m", tmp_path / "dest", root)


def add(down: Downstream, url: str, dest: object, *options: str, name: str = "m") -> str:
    """What `add` says while it refuses; nothing is written then."""
    done = down.run("add", *options, "--no-check", "--", name, url, str(dest))
    assert done.code == ExitCode.CONFIG, done
    assert not (down.root / "client.toml").exists()
    assert "metadata is damaged" not in done.err
    return done.err


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("", "check that the variables of the shell are set"),
        ("mirror.example:8440", f"{HTTP}mirror.example:8440?"),
        ("mirror.example", f"{HTTP}mirror.example:8440?"),
        ("[::1]:8440", f"{HTTP}[::1]:8440?"),
        ("htp://mirror.example:8440", "did you mean 'http'?"),
        ("rsync://mirror.example/tools", f"{HTTP}mirror.example:8440?"),
        ("ftp://user:secret@mirror.example/", f"{HTTP}mirror.example:8440?"),
        ("http://", "names no host"),
        ("http://h:port/", "port"),
        ("http://h/ b", "a space"),
    ],
)
def test_an_address_that_is_none_is_refused(down: Downstream, url: str, meant: str) -> None:
    said = add(down, url, "/srv/m")
    assert meant in said
    assert "[modules.m]: url: " in said
    assert "secret" not in said


@pytest.mark.parametrize(
    "url",
    [
        *("http://h", "https://u:p@h:1/x", "ssh://h/x.git", "git://h/x.git", "file:///srv/x.git"),
        *("/srv/x.git", "git@h:x.git", "h:x/y.git", "http://[::1]:8440/"),
    ],
)
def test_an_address_that_git_understands_is_taken(down: Downstream, url: str) -> None:
    assert down.run("add", "--no-check", "m", url, str(down.dest)).code == 0
    assert down.run("status").code == 0


@pytest.mark.parametrize("dest", ["", " ", "/", "//", "/srv/.."])
def test_a_dest_that_nothing_should_be_mirrored_to_is_refused(down: Downstream, dest: str) -> None:
    assert "[modules.m]: dest: " in add(down, "http://h", dest)


def test_a_dest_beside_the_state_is_refused(down: Downstream) -> None:
    for dest in (down.root, down.root / "modules/m", down.root.parent):
        assert "one in the other" in add(down, "http://h", dest)


@pytest.mark.parametrize("name", ["bad name", "../x", "", ".x", "x.git"])
def test_a_name_that_is_none_is_a_mistake_made_here(down: Downstream, name: str) -> None:
    said = add(down, "http://h", "/srv/m", name=name)
    assert "cannot be a module's name" in said


def test_trees_of_two_modules_are_apart(down: Downstream) -> None:
    assert down.run("add", "--no-check", "one", "http://h", str(down.dest)).code == 0
    before = (down.root / "client.toml").read_bytes()
    for dest in (down.dest, down.dest / "below", f"{down.dest}/x/.."):
        done = down.run("add", "--no-check", "two", "http://h", str(dest))
        assert done.code == ExitCode.CONFIG
        assert "the tree of one" in done.err
    assert (down.root / "client.toml").read_bytes() == before
    text = before.decode() + 'protect = ["/below"]\n'
    (down.root / "client.toml").write_text(text, encoding="utf-8")
    done = down.run("add", "--no-check", "two", "http://h", str(down.dest / "below"))
    assert done.code == 0, done


def test_a_relative_dest_is_made_absolute(
    down: Downstream, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    added = down.run("add", "--no-check", "m", "http://h", "some/../dest", "--json")
    assert added.events("added")[0]["dest"] == str(down.dest)


def test_an_empty_other_url_is_refused(down: Downstream) -> None:
    assert "url: the address is empty" in add(down, "http://h", "/srv/m", "--other-url", "")


def test_a_module_that_the_upstream_lacks_is_warned_of(place: Site, down: Downstream) -> None:
    up = place.upstream()
    up.put(b"a")
    up.commit()
    done = down.run("add", f"{up.name}x", place.url, str(down.dest))
    assert done.code == 0
    assert f"did you mean '{up.name}'?" in done.err
    done = down.run("add", "other", place.url, str(down.dest / "x"), "--upstream-name", up.name)
    assert "warning" not in done.err
    done = down.run("add", "gone", "http://127.0.0.1:1", f"{down.dest}2", "--json")
    assert done.code == 0
    assert "Connection refused" in done.events("added")[0]["warning"]


def test_the_modules_of_an_upstream_are_listed(place: Site, down: Downstream) -> None:
    up, empty = place.upstream(), place.upstream()
    up.many(b"a", 3)
    up.commit()
    done = down.run("modules", place.url, "--json")
    found = {event["name"]: event for event in done.events("served")}
    assert found[up.name]["serial"] == 1
    assert found[up.name]["entries"] == 5
    assert found[empty.name]["serial"] is None
    assert f"{up.name}: serial 1, 5 entries" in down.run("modules", f"{place.url}/").out
    for url in (f"{place.url}/git/{up.name}.git", place.url):
        assert down.run("modules", url).code == 0
    assert down.run("modules", "rsync://h/m").code == ExitCode.CONFIG
    assert down.run("modules", place.content_url.replace("rsync", "http")).code != 0


def test_a_module_that_is_not_there_is_told_with_what_is(place: Site) -> None:
    up = place.upstream()
    up.put(b"a")
    up.commit()
    down = place.downstream(up, upstream_name=f"{up.name}x")
    done = down.sync()
    assert done.code == ExitCode.UNKNOWN_MODULE
    assert f"did you mean '{up.name}'?" in done.err


def test_tls_where_there_is_none_is_said_so(place: Site) -> None:
    up = place.upstream()
    down = place.downstream(up, url=place.url.replace("http:", "https:"))
    done = down.sync()
    assert done.code == ExitCode.NETWORK
    assert f"did you mean {place.url}/" in done.err
    assert "_ssl.c" not in done.err


WRONG: list[tuple[str, str, str]] = [
    ('streams = "2"', "streams: expected a whole number", "streams = 2"),
    ("timeout = 0", "timeout: expected a whole number >= 1", "timeout = 600"),
    ("timeout = -1", "timeout: expected a whole number >= 1", "timeout = 600"),
    ("batch_size = 0", "batch_size: expected a whole number >= 1", "batch_size = 1073741824"),
    ("streams = 100000", "streams: expected a whole number <= 64", "streams = 2"),
    ('trash = "7x"', "trash: is no span of time", 'trash = "7d"'),
    ("trash = -5", "trash: is no span of time", 'trash = "7d"'),
    ('duplicates = "link"', "duplicates: invalid enum value 'link'", '"hardlink"'),
    ('filter = "- x"', "filter: expected a list in brackets", 'filter = ["- *.iso"]'),
    ('max_delet = "5"', "unknown key 'max_delet'", "did you mean 'max_delete'?"),
    ('content_urls = ["mirror.example/tools"]', "content_urls: not a content URL", "rsync://HOST"),
    ("content_urls = [5]", "content_urls: expected a text in quotes or a table", "priority"),
    ('content_urls = [{ uri = "/" }]', "content_urls: object contains unknown field", "priority"),
    ("content_urls = [{ priority = 2 }]", "content_urls: ", "url ="),
    ('content_urls = [{ url = "/", priority = 0 }]', "content_urls: expected a whole", "priority"),
    ('content_urls = [{ url = "/", share = -1 }]', "content_urls: expected a whole", "priority"),
    ('content_urls = [{ url = "nowhere" }]', "content_urls: not a content URL", "rsync://HOST"),
    (
        'rsync_options = ["--delete"]',
        "rsync_options: rsync option '--delete'",
        "huai itself selects",
    ),
    ('rsync_options = ["-vn"]', "rsync_options: rsync option '-vn'", "huai itself selects"),
    ('rsync_options = ["--bogus"]', "rsync_options: rsync: --bogus: unknown option", "rsync(1)"),
    ('reuse_from = ["nosuch"]', "reuse_from: no other module 'nosuch'", "known are"),
    ('protect = ["["]', "protect: '[' can match no path", "after rsync's --exclude"),
    ('protect = [""]', "protect: '' can match no path", "after rsync's --exclude"),
    ('max_delete = "ten"', "max_delete: 'ten' is neither a count nor a share", "5000 or 10%"),
    ('max_delete_in = {"/" = 5}', "max_delete_in: '/' is the whole tree", "max_delete"),
    ('max_delete_in = {"/a" = "x"}', "max_delete_in: max_delete: 'x' is neither", "10%"),
    ('filter = ["nonsense"]', "filter: ", "rule"),
    ('publish = ["nonsense x"]', "publish: publish rule", "pointer"),
    ("url = 5", "url: expected", "http://"),
]


@pytest.mark.parametrize(("line", "said", "hint"), WRONG, ids=[each[0] for each in WRONG])
def test_what_is_wrong_in_the_file_is_found_by_a_poll_with_nothing_new(
    place: Site, line: str, said: str, hint: str
) -> None:
    up = place.upstream()
    up.put(b"a")
    down = place.synced_downstream(up)
    file = down.root / "client.toml"
    lines = file.read_text(encoding="utf-8").splitlines()
    key = line.partition(" ")[0]
    kept = [each for each in lines if not each.startswith(f"{key} ")]
    file.write_text("\n".join([*kept, line]) + "\n", encoding="utf-8")
    for command in ("sync", "plan", "doctor"):
        done = down.run(command, up.name)
        assert done.code == ExitCode.CONFIG, done
        assert f"[modules.{up.name}]: {said}" in done.err + done.out
        assert hint in done.err + done.out
        assert "hostile" not in done.err


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("delete_after", 3600), ("trash", 7), ("max_age", 60), ("queue_time", 60)),
        *(("max_delete", 5), ("max_age", "1w"), ("max_delete_in", {"/a": 5, "/*": "5%"})),
        *(("rsync_options", ["-z", "--rsh=ssh -p 22"]), ("protect", ["[a]x", "/b[", "a\\[b"][:1])),
    ],
)
def test_values_may_be_spelt_as_the_page_says(place: Site, key: str, value: Any) -> None:
    import json

    up = place.upstream()
    up.put(b"a")
    up.commit()
    down = place.downstream(up)
    told = json.dumps(value).replace(": ", " = ") if isinstance(value, dict) else json.dumps(value)
    with (down.root / "client.toml").open("a", encoding="utf-8") as file:
        file.write(f"{key} = {told}\n")
    assert down.run("plan", up.name).code == 0
    if key != "rsync_options":
        down.synced()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('[modules.m]\nurl = "a"\nurl = "b"\n', "line 3: url stands twice"),
        ('[modules.m]\nurl = "a\n', "is a quote missing?"),
        ("[modules.m]\nurl = a\n", "texts stand in quotes"),
        ("[modules.m]\n[modules.m]\n", "line 2: [modules.m] stands twice, first in line 1"),
        ("modules = 5\n", "[modules.NAME]"),
        ("[modules.m]\nurl = 'http://h'\n", "dest = "),
        ("[modules.'a b']\nurl = 'http://h'\ndest = '/srv/m'\n", "for example: debian"),
    ],
)
def test_a_file_that_cannot_be_read_says_what_to_look_for(
    down: Downstream, text: str, hint: str
) -> None:
    down.root.mkdir()
    (down.root / "client.toml").write_text(text, encoding="utf-8")
    done = down.run("status")
    assert done.code == ExitCode.CONFIG
    assert hint in done.err
    assert "client.toml" in done.err


def test_all_of_no_modules_is_no_success(down: Downstream) -> None:
    for command in (("sync", "--all"), ("status",)):
        done = down.run(*command)
        assert done.code == ExitCode.CONFIG
        assert "client.toml" in done.err
        assert "huai-client add NAME URL DEST" in done.err
