"""The commands that mirror a module."""

import shlex
import tomllib

from huai_server.http.pages.recipes import download_urls, recipes

URLS = ("https://mirror.example/x", "rsync://mirror.example/it's mine/")


def test_a_shell_takes_each_name_and_url_as_one_word() -> None:
    by_tool = {each.tool: each for each in recipes('a "b;$x', URLS)}
    add, sync = f"{by_tool['huai'].before}URL{by_tool['huai'].after}".split("\n")
    assert shlex.split(add) == ["huai-client", "add", 'a "b;$x', "URL", '/srv/mirror/a "b;$x']
    assert shlex.split(sync) == ["huai-client", "sync", 'a "b;$x']
    assert shlex.split(by_tool["rsync"].before)[-2:] == [URLS[1], '/srv/mirror/a "b;$x/']
    clone = f"{by_tool['git'].before}http://host{by_tool['git'].after}"
    assert shlex.split(clone)[-1] == 'http://host/git/a "b;$x.git'
    (mirror,) = tomllib.loads(f"{by_tool['tunasync'].before}U{by_tool['tunasync'].after}")[
        "mirrors"
    ]
    assert (mirror["name"], mirror["upstream"]) == ('a "b;$x', "U")
    assert shlex.split(mirror["command"]) == ["huai-client", "sync", 'a "b;$x']


def test_without_an_rsync_url_there_is_no_rsync() -> None:
    assert [each.tool for each in recipes("m", URLS[:1])] == ["huai", "tunasync", "git"]


def test_a_browser_downloads_over_http_only() -> None:
    assert download_urls(URLS, b"d/a#\xff b") == ["https://mirror.example/x/d/a%23%FF%20b"]
