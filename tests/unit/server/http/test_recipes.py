"""The commands that mirror a module."""

import shlex
import tomllib

from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory, Entry
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath
from huai_server.http.pages.recipes import download_urls, package_recipes, read_layouts, recipes
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.trees import snapshot, tree_of

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


class CountedSnapshot(Snapshot):
    """A snapshot that counts the parts of directories that it reads."""

    parts = 0

    def part(self, path: RelPath, start: int, most: int) -> tuple[Listing, list[Entry], int] | None:
        self.parts += 1
        assert most <= 8
        return super().part(path, start, most)


def test_the_use_of_packages_takes_few_reads_however_large_the_tree_is() -> None:
    suites = [b"dists/s%02d" % each for each in range(30)]
    folders = [b"%b/%03d" % (suite, each) for suite in suites for each in range(100)]
    # Of packages of a component after so many others nothing is said.
    for tops, expected in ((folders, ["apt"]), (folders[50::100], [])):
        paths = [b"dists", *suites, *folders, *(top + b"/binary-all" for top in tops)]
        objects = MemoryObjects()
        tree = snapshot(tree_of(*(Directory(RelPath(path), 0) for path in paths)), objects).tree
        counted = CountedSnapshot(objects, tree)
        uses = package_recipes("m", URLS, read_layouts(counted))
        assert [each.tool for each in uses] == expected
        assert counted.parts <= 21
