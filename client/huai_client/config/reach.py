"""How far an upstream may lead this program into networks that are not the internet.

Content URLs and mirrors that the metadata name, and targets of redirections, are somebody else's
words: without a limit an upstream could have any server of this network asked.  Rules:

- Where one of the URLs of client.toml is at private addresses alone, the others may be at private
  ones; where one is on this machine or its link, anywhere.  So an upstream inside a network works
  as one on the internet does.
- Networks that `allow_networks` names are allowed.
- The address that is connected to is what counts, not a name.

Loads next to nothing before an address is to be judged: each poll passes here.
"""

import re
import socket
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from huai_program.configuration import ConfigError
from huai_program.urls import split_url

if TYPE_CHECKING:
    from huai_program.addresses import Address

_SHELL_HOST = re.compile(r"(?:[^@/:]+@)?(\[[^\]]+\]|[^@/:]+):")
_THIS_MACHINE = "127.0.0.1"
HINT = "if that is meant, name the network in allow_networks in client.toml"


class Reach(NamedTuple):
    """Which addresses a URL may lead to that client.toml does not name."""

    named: tuple[str, ...] = ()
    """The URLs of client.toml."""
    networks: tuple[str, ...] = ()
    """As `allow_networks` has them."""

    def refusal(self, address: str) -> str:
        """Return why `address` is not connected to; empty if it is."""
        from ipaddress import ip_address, ip_network

        from huai_program.addresses import is_internal, is_local

        found = ip_address(address.partition("%")[0])
        if not is_internal(found):
            return ""
        if any(found in ip_network(text) for text in self.networks):
            return ""
        allowed = is_local if is_local(found) else is_internal
        if any(_lies(url, allowed) for url in self.named):
            return ""
        place = "this machine or its link" if is_local(found) else "a private network"
        return f"{found} is an address of {place}"

    def refusal_of_host(self, host: str) -> str:
        """Return why `host` is not connected to, as far as its name tells; empty if it is."""
        return next(filter(None, (self.refusal(str(each)) for each in _resolved(host))), "")


def check_networks(texts: Iterable[str]) -> None:
    """Raise `ConfigError` for what is no value of `allow_networks`."""
    from ipaddress import ip_network

    for text in texts:
        try:
            ip_network(text)
        except ValueError:
            raise ConfigError(
                f"allow_networks: {text!r} is not a network",
                hint='allow_networks = ["10.20.0.0/16"]',
            ) from None


def _lies(url: str, within: Callable[["Address"], bool]) -> bool:
    """Return True if all addresses of a URL are `within`: names are the upstream's to resolve."""
    found = _addresses(url)
    return bool(found) and all(map(within, found))


@lru_cache(maxsize=64)
def _addresses(url: str) -> "tuple[Address, ...]":
    """The addresses of a URL of client.toml; a path is of this machine."""
    if "://" in url:
        try:
            host = split_url(url).hostname
        except ValueError:
            return ()
    else:
        shell = _SHELL_HOST.match(url)
        host = shell[1].strip("[]") if shell else None
    return _resolved(host or _THIS_MACHINE)


def _resolved(host: str) -> "tuple[Address, ...]":
    from ipaddress import ip_address

    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(ip_address(str(each[4][0]).partition("%")[0]) for each in found)
