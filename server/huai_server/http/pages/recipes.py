"""The commands that mirror a module, for people to copy.

Names and URLs are quoted for a shell.  Reads a snapshot, so call it in threads.
"""

import re
from collections.abc import Sequence
from itertools import groupby, islice
from json import dumps
from operator import itemgetter
from shlex import quote
from typing import NamedTuple
from urllib.parse import quote_from_bytes

from huai_schema.entries import Directory
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, basename

_NAMES = 8
"""The first names of a directory that are looked at."""
_COMPONENTS = 12
"""The most directories of all suites that are looked at."""
_WORD = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._+-]{0,40}")
_FOLDER = "/srv/mirror/"
_SIZE = '"Total size is ([0-9]+)"'


class Recipe(NamedTuple):
    """A way to mirror a module."""

    tool: str
    before: str
    """The text up to this server's URL."""
    after: str | None = None
    """The text after it; None if the URL is not part of the text."""


class Layouts(NamedTuple):
    """The package managers whose layout a tree has."""

    apt: Sequence[bytes]
    """The first suite, and its components; empty without packages for APT."""
    pip: bool
    pacman: bool
    dnf: bool


def recipes(name: str, content_urls: Sequence[str]) -> list[Recipe]:
    """Return the ways to mirror a module, huai's first; rsync only with an rsync content URL."""
    word, folder = quote(name), quote(_FOLDER + name)
    ways = [Recipe("huai", f"huai-client add {word} ", f" {folder}\nhuai-client sync {word}")]
    rsync = next((url for url in content_urls if url.startswith("rsync://")), None)
    if rsync is not None:
        source = quote(rsync.rstrip("/") + "/")
        options = "-aH --delete-delay --delay-updates --safe-links"
        ways.append(Recipe("rsync", f"rsync {options} {source} {quote(_FOLDER + name + '/')}"))
    # A JSON string is a TOML string too.
    section = f'[[mirrors]]\nname = {dumps(name)}\nprovider = "command"\nupstream = "'
    command = f'"\ncommand = {dumps(f"huai-client sync {word}")}\nsize_pattern = {_SIZE}'
    ways.append(Recipe("tunasync", section, command))
    ways.append(Recipe("git", "git clone --bare ", f"/git/{quote(name + '.git')}"))
    return ways


def download_urls(content_urls: Sequence[str], path: bytes) -> list[str]:
    """Return the URLs of the file at `path` below those content URLs that a browser can use."""
    web = (url for url in content_urls if url.startswith(("http://", "https://")))
    return [f"{url.rstrip('/')}/{quote_from_bytes(path)}" for url in web]


def key_recipe(keys: Sequence[str], threshold: int) -> Recipe:
    """Return the lines of client.toml that pin the keys of a signed module."""
    lines = [f"keys = {dumps([*keys])}", 'verify = "require"']
    if threshold > 1:
        lines.append(f"threshold = {threshold}")
    return Recipe("client.toml", "\n".join(lines))


def read_layouts(snapshot: Snapshot) -> Layouts:
    """Find the layouts of package repositories at the top of a tree."""
    pip = _has(snapshot, b"simple") and _has(snapshot, b"packages")
    dnf = snapshot.leaf(RelPath(b"repodata/repomd.xml")) is not None
    return Layouts(_apt_words(snapshot), pip, _has(snapshot, b"core/os"), dnf)


def package_recipes(name: str, content_urls: Sequence[str], layouts: Layouts) -> list[Recipe]:
    """Return how package managers use a tree with these layouts."""
    url = next(iter(download_urls(content_urls, b"")), "").rstrip("/")
    if not url:
        return []
    uses = []
    if layouts.apt:
        uses.append(Recipe("apt", f"deb {url} {b' '.join(layouts.apt).decode('ascii')}"))
    if layouts.pip:
        uses.append(Recipe("pip", f"pip install --index-url {quote(url + '/simple/')} PACKAGE"))
    if layouts.pacman:
        uses.append(Recipe("pacman", f"Server = {url}/$repo/os/$arch"))
    if layouts.dnf:
        uses.append(Recipe("dnf", f"[{name}]\nname={name}\nbaseurl={url}/"))
    return uses


def _has(snapshot: Snapshot, path: bytes) -> bool:
    return snapshot.directory(RelPath(path)) is not None


def _apt_words(snapshot: Snapshot) -> list[bytes]:
    """Return the first suite of packages for APT, then its components; empty without packages.

    Reads about 20 directories at most, however many there are.
    """
    folders = (
        (suite, each)
        for suite in _directories(snapshot, b"dists")
        for each in _directories(snapshot, b"dists/" + suite)
    )
    for suite, pairs in groupby(islice(folders, _COMPONENTS), itemgetter(0)):
        components = [
            each
            for _, each in pairs
            if any(
                below.startswith(b"binary-")
                for below in _directories(snapshot, b"dists/%b/%b" % (suite, each))
            )
        ]
        if components:
            return [suite, *components]
    return []


def _directories(snapshot: Snapshot, path: bytes) -> list[bytes]:
    """Return the first subdirectories of a directory whose names are plain words; none without."""
    part = snapshot.part(RelPath(path), 0, _NAMES)
    entries = part[1] if part else []
    names = (basename(each.path) for each in entries if isinstance(each, Directory))
    return [each for each in names if _WORD.fullmatch(each)]
