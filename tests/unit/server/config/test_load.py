"""The server's configuration: mistakes are named, comments stay, no edit is lost."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from huai_program.configuration import ConfigError, UnknownModuleError
from huai_server.config.load import ServerConfig, add_module, config_path, load, remove_module
from huai_server.config.tables import Fallback, Listen, Module
from tests.support.committing import SECONDS, server_command, server_environment


def written(root: Path, text: str) -> Path:
    config_path(root).write_text(text)
    return root


def expected(root: Path, listen: Listen, modules: dict[str, Module]) -> ServerConfig:
    return ServerConfig(listen, modules, Fallback(folder=str(root / "fallback")))


def test_a_missing_file_is_an_empty_configuration(tmp_path: Path) -> None:
    assert load(tmp_path) == expected(tmp_path, Listen(), {})


MISTAKES: dict[str, tuple[str, ...]] = {
    "modulse = 1": ("modulse", "modules"),
    "[listen]\nprot = 1": ("prot", "port"),
    "[listen]\ntls = {}": ("tls", "certificate"),
    '[listen]\ntls = {certificate = "/c", key = "k"}': ("tls", "key"),
    '[listen]\ntls = {certificate = "/c", key = "/k", ca = "/x"}': ("ca", "client_ca"),
    "[modules.m]\npath = '/'\naccess = 'secret'": ("modules.m", "access"),
    "[modules.m]\npath = '/'\ncertificates = ['x']": ("modules.m", "certificates"),
    "[modules.m]\npath = '/'\nexcludes = []": ("excludes", "exclude"),
    "[modules.m]\npaht = '/'": ("modules.m", "path"),
    "[modules.m]\ndigest = 'now'": ("modules.m", "path"),
    "[modules.m]\npath = 3": ("modules.m", "path"),
    "[modules.m]\npath = '/'\ndigest = 'never'": ("modules.m", "digest"),
    "[modules.m]\npath = '/'\nexclude = '*.tmp'": ("modules.m", "exclude"),
    "[modules.m]\npath = 'srv/m'": ("modules.m", "srv/m"),
    "[modules.m]\npath = ''": ("modules.m", "path"),
    '[modules.m]\npath = "/a\\u0000b"': ("modules.m", "path"),
    "[modules.m]\npath = '/'\ncontent_urls = ['-e sh']": ("modules.m", "-e sh"),
    '[modules.m]\npath = "/"\ncontent_urls = ["rsync://h/\\n"]': ("modules.m", "content"),
    "[modules.m]\npath = '/'\ncontent_urls = ['http://u@h/m']": (
        "modules.m",
        "content_urls",
        "http:",
    ),
    "[modules.m]\npath = '/'\ncontent_urls = ['https://h/%2e%2e/m']": ("content_urls",),
    "[modules.m]\npath = '/'\ncontent_urls = ['rsync://h/']": ("modules.m", "content_urls"),
    "[modules.m]\npath = '/'\ncontent_urls = ['rsync://h/m/../n']": ("modules.m", "content_urls"),
    "[modules.m]\npath = '/'\ncontent_urls = ['a/b']": ("modules.m", "content_urls", "'a/b'"),
    "[modules.m]\npath = '/'\ncontent_urls = ['/srv/m']": ("modules.m", "content_urls"),
    "[modules.m]\npath = '/'\ncontent_urls = ['']": ("modules.m", "content_urls"),
    "[modules.m]\npath = '/'\ncontent_urls = [3]": ("modules.m", "content_urls", "text"),
    "[modules.m]\npath = '/'\nmirrors = ['/srv/m']": ("modules.m", "mirrors", "'/srv/m'"),
    "[modules.m]\npath = '/'\nmirrors = ['https://h/?q']": ("modules.m", "mirrors", "https:"),
    f"[modules.m]\npath = '/'\nmirrors = {['https://h/m'] * 65}": ("modules.m", "64 mirrors"),
    "[modules.m]\npath = '/'\nserve_content = 'yes'": ("serve_content", "= true"),
    "[modules.m]\npath = '/'\nblock_index = 4096": ("modules.m", "block_index", "131072"),
    "[modules.m]\npath = '/'\nblock_index = -1": ("modules.m", "block_index"),
    "[modules.m]\npath = '/'\nowners = 1": ("modules.m", "owners", "true or false"),
    "[modules.m]\npath = '/'\nfallback = { max_connections = 'x' }": (
        "modules.m.fallback",
        "whole",
    ),
    "[modules.m]\npath = '/'\nwebhooks = 'https://h/'": ("modules.m", "webhooks", "list"),
    "[modules.m]\npath = '/'\nwebhooks = [{ url = 'https://h/' }]": ("webhooks", "secret_file"),
    "[modules.m]\npath = '/'\nwebhooks = [{ secret = '/s', url = 'https://h/' }]": (
        "webhooks",
        "secret_file",
    ),
    "[modules.m]\npath = '/'\nwebhooks = [{ url = 'file:///etc', secret_file = '/s' }]": (
        "webhooks",
        "file:///etc",
    ),
    "[modules.m]\npath = '/'\nwebhooks = [{ url = 'https://u@h/', secret_file = '/s' }]": (
        "webhooks",
        "url",
    ),
    "allowed_downstreams = 3": ("allowed_downstreams", "tables"),
    "[allowed_downstreams.m]\nkey = 'x'": ("allowed_downstreams.m", "hosts"),
    "[allowed_downstreams.m]\nkey = 'x'\nhosts = ['h']": ("allowed_downstreams.m", "key"),
    "[allowed_downstreams.m]\nkey = 'x'\nhosts = ['h/p']": ("allowed_downstreams.m", "hosts"),
    "[allowed_downstreams.m]\nkey = 'x'\nhosts = ['h']\ncountry = 'de'": ("country", '"DE"'),
    "[allowed_downstreams.m]\nkey = 'x'\nhosts = ['h']\nsponsor = {name = 'S', url = 'http://s'}": (
        *("allowed_downstreams.m", "url"),
    ),
    "[allowed_downstreams.'../m']\nkey = 'x'\nhosts = ['h']": ("../m", "must consist of letters"),
    "[mirrors]\nmax_lag = 'soon'": ("mirrors", "max_lag"),
    "[modules.m]\npath = '/'\nengine = { where = { 'a/' = 'n', 'a/b' = 'n' } }": ("where", "'a/b'"),
    "[modules.m]\npath = '/'\nengine = { where = { 'a' = 'n', '/a' = 'm' } }": ("where", "'/a'"),
    "[modules.m]\npath = '/'\nengine = { where = { '/' = 'n' } }": ("where", "root"),
    "[modules.m]\npath = '/'\nengine = { where = { 'a/../b' = 'n' } }": ("where", "'a/../b'"),
    "[modules.m]\npath = '/'\nengine = { where = { 'a' = 'n=4 m' } }": ("engine.where", "form"),
    "[modules.m]\npath = '/'\nrelay = 'client'": ("modules.m", "relay", "'client'"),
    "[modules.m]\npath = '/'\nrelay_name = '../m'": ("modules.m", "relay_name", "'../m'"),
    "[modules.m]\npath = '/'\nrelay = '/c'\nexport = { files = ['ls-lR'] }": (
        "modules.m",
        "cannot have an export",
    ),
    "[modules.m]\npath = '/'\nrelay = '/c'\ncontent_urls = ['rsync://h/a b']": (
        "content_urls",
        "percent-encode",
    ),
    "[listen]\nproxies = ['nonsense']": ("listen", "proxies", "nonsense"),
    "[listen]\nrequest_timeout = 0.5": ("listen", "request_timeout", "duration"),
    "[modules.'a/b']\npath = '/'": ("a/b", ""),
    "[modules.'.m']\npath = '/'": (".m", ""),
    "[modules.'m.git']\npath = '/'": ("m.git", ""),
    "modules = 3": ("modules", ""),
    "modules.m = 3": ("modules.m", ""),
    "listen = 3": ("listen", ""),
    "[listen]\nport = 70000": ("listen", "port"),
    "[listen]\nport = '1'": ("listen", "port"),
    "[listen]\nmax_transfers = 0": ("listen", "max_transfers"),
    "[listen]\nrequest_timeout = 0": ("listen", "request_timeout"),
    "[listen]\nshutdown_grace = nan": ("listen", "shutdown_grace"),
    "[modules": ("server.toml", ""),
    "[modules.m]\npath = '/'\n[modules.m]\npath = '/'": ("server.toml", ""),
}


def test_mistakes_are_named(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for text, words in MISTAKES.items():
        with subtests.test(text=text):
            with pytest.raises(ConfigError) as caught:
                load(written(tmp_path, text))
            message = f"{caught.value.message} {caught.value.hint}"
            assert [word for word in ("server.toml", *words) if word not in message] == []
            assert caught.value.exit_code == 40
            assert caught.value.hint


def test_what_is_not_utf_8_is_named(tmp_path: Path) -> None:
    config_path(tmp_path).write_bytes(b"# \xff\n")
    with pytest.raises(ConfigError, match=r"server\.toml"):
        load(tmp_path)


def test_an_unknown_module_is_told_its_neighbours(tmp_path: Path) -> None:
    add_module(tmp_path, "centos", Module("/srv/centos"))
    with pytest.raises(UnknownModuleError) as caught:
        load(tmp_path).module("cent0s")
    assert "'centos'" in caught.value.hint
    assert caught.value.exit_code == 45


@pytest.mark.parametrize(
    "url",
    [
        *("rsync://h/m", "rsync://h:873/m/x/", "rsync://u@h.example/m", "rsync://[::1]:8/m"),
        *("h::m", "u@h::m/x", "rsync://127.0.0.1/m.x"),
        *("https://h", "http://[::1]:8080/a%20b/", "https://h.example/~u/m"),
    ],
)
def test_content_urls_of_rsync_daemons_and_web_servers(tmp_path: Path, url: str) -> None:
    add_module(tmp_path, "m", Module("/srv/m", (url,)))
    assert load(tmp_path).module("m").content_urls == (url,)


COMMENTED = """# first
[modules.old]  # same line
path = "/srv/old"  # why

# between
[listen]
port = 1  # last
"""


def test_comments_and_order_stay(tmp_path: Path) -> None:
    written(tmp_path, COMMENTED)
    add_module(tmp_path, "new", Module("/srv/new", exclude=("*.o",), digest="off"))
    text = config_path(tmp_path).read_text()
    for line in COMMENTED.splitlines():
        assert line in text
    assert load(tmp_path).modules["new"] == Module("/srv/new", exclude=("*.o",), digest="off")
    assert load(tmp_path).modules["old"] == Module("/srv/old")
    remove_module(tmp_path, "new")
    assert set(load(tmp_path).modules) == {"old"}
    for line in COMMENTED.splitlines():
        assert line in config_path(tmp_path).read_text()


@pytest.mark.parametrize(
    "text",
    [
        *("modules = {}\n", "modules = { old = { path = '/old' } }\n"),
        *("[modules]\nold.path = '/old'\n", "modules.old.path = '/old'\n"),
        "[modules.old]\npath = '/old'\n[listen]\nport = 1\n[modules.other]\npath = '/other'\n",
        *("[listen]\nport = 1", "\n\n# only a comment"),
    ],
)
def test_every_way_to_write_the_tables(tmp_path: Path, text: str) -> None:
    before = load(written(tmp_path, text))
    add_module(tmp_path, "new.one", Module("/new"))
    after = load(tmp_path)
    assert after.modules == {**before.modules, "new.one": Module("/new")}
    assert after.listen == before.listen
    for name in after.modules:
        remove_module(tmp_path, name)
    assert load(tmp_path) == expected(tmp_path, before.listen, {})


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    add_module(tmp_path, "m", Module("/a"))
    with pytest.raises(ConfigError, match="exists already"):
        add_module(tmp_path, "m", Module("/b"))
    assert load(tmp_path).module("m").path == "/a"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-x", "x.git", "a b", "\n", "x" * 129, "é"])
def test_names_that_cannot_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError):
        add_module(tmp_path, name, Module("/a"))
    assert not config_path(tmp_path).exists()


def test_a_path_that_toml_cannot_hold(tmp_path: Path) -> None:
    add_module(tmp_path, "m", Module("/a"))
    before = config_path(tmp_path).read_bytes()
    with pytest.raises(ConfigError):
        add_module(tmp_path, "n", Module(os.fsdecode(b"/\xff")))
    assert config_path(tmp_path).read_bytes() == before
    assert not list(tmp_path.glob(".server.toml.[0-9]*"))


def test_the_file_mode_is_kept_and_a_symlink_too(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    real = tmp_path / "etc/huai.toml"
    real.touch(0o600)
    config_path(tmp_path).symlink_to("etc/huai.toml")
    add_module(tmp_path, "m", Module("/a"))
    assert config_path(tmp_path).is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert "/a" in real.read_text()


def test_a_new_file_may_be_read_by_everybody(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        add_module(tmp_path, "m", Module("/a"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(config_path(tmp_path).stat().st_mode) == 0o644


def test_additions_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            server_command(tmp_path, "add", f"m{number}", str(tmp_path)),
            env=server_environment(),
            stdout=subprocess.DEVNULL,
        )
        for number in range(6)
    ]
    assert [process.wait(SECONDS) for process in processes] == [0] * 6
    assert set(load(tmp_path).modules) == {f"m{number}" for number in range(6)}


@pytest.mark.parametrize("to", ["s3://bucket", "s3://my.bucket-1/a/b_c/", "/srv/www"])
def test_places_of_static_files(tmp_path: Path, to: str) -> None:
    """A module's own endpoint has precedence over that of `[static]`."""
    url, other = "https://s3.example.org", "http://[::1]:9000/x"
    text = (
        f'[static]\nto = ["{to}"]\nendpoint = "{url}"\n[modules.m]\npath = "/m"\n'
        f'[modules.n]\npath = "/n"\n[modules.n.static]\nendpoint = "{other}"\n'
    )
    config = load(written(tmp_path, text))
    assert config.static_places("n") == config.static_places("m") == (to,)
    assert [config.static_endpoint(name) for name in "mn"] == [url, other]


def test_a_private_module_is_published_to_its_own_places_alone(tmp_path: Path) -> None:
    """The common places belong to web servers, which do not check tokens."""
    private = 'path = "/m"\naccess = "private"'
    text = (
        f'[static]\nto = ["/srv/www"]\n[modules.m]\n{private}\n'
        f'[modules.n]\n{private}\nstatic = {{to = ["/srv/guarded"]}}\n'
    )
    config = load(written(tmp_path, text))
    assert [config.static_places(name) for name in "mn"] == [(), ("/srv/guarded",)]


@pytest.mark.parametrize(
    "line",
    [
        *(f'to = ["{to}"]' for to in ("s3://", "s3:/b", "s3://b", "s3://bkt/../x", "s3://bkt//x")),
        *('to = ["s3://bkt/a?b"]', 'to = ["https://h/x"]', 'endpoint = "s3.example.org"'),
        'endpoint = "https://user:secret@s3.example.org"',
    ],
)
def test_what_is_no_place_of_static_files(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError, match="static"):
        load(written(tmp_path, f"[static]\n{line}\n"))
