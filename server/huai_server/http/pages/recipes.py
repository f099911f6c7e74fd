"""The commands that mirror a module, for people to copy.

Pure.  Names and URLs are quoted for a shell.
"""

from collections.abc import Sequence
from json import dumps
from shlex import quote
from typing import NamedTuple
from urllib.parse import quote_from_bytes

_FOLDER = "/srv/mirror/"
_SIZE = '"Total size is ([0-9]+)"'


class Recipe(NamedTuple):
    """A way to mirror a module."""

    tool: str
    before: str
    """The text up to this server's URL."""
    after: str | None = None
    """The text after it; None if the URL is not part of the text."""


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
