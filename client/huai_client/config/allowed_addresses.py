"""The limits within which an upstream may lead this program into internal networks.

Content URLs and mirrors of the metadata, and redirect targets, are under the upstream's control:
without a limit it could cause requests to any server of this network.  Rules:

- If one of the URLs of client.toml has private addresses only, the others may be at private ones;
  if one is on this machine or its link, anywhere.  So an upstream inside a network works as one on
  the internet does.
- Networks that `allow_networks` names are allowed.
- The address of the connection counts, not a name.

Imports very little before an address is checked: each poll loads it.
"""

import re
import socket
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from huai_program.configuration import ConfigError
from huai_program.urls import split_url

if TYPE_CHECKING:
    from huai_program.addresses import Address

_SHELL_HOST = r"(?:[^@/:]+@)?(\[[^\]]+\]|[^@/:]+):"
_THIS_MACHINE = "127.0.0.1"
HINT = "if that is meant, name the network in allow_networks in client.toml"


class AllowedAddresses(Struct, frozen=True):
    """The addresses to which URLs that client.toml does not name may lead."""

    configured_urls: tuple[str, ...] = ()
    """The URLs of client.toml."""
    networks: tuple[str, ...] = ()
    """The networks of `allow_networks`."""

    def refusal(self, address: str) -> str:
        """Return why connections to `address`, an IP address, are refused, or an empty text.

        Resolves the hosts of the configured URLs for an internal address.
        """
        from ipaddress import ip_address, ip_network

        from huai_program.addresses import is_internal, is_local

        ip = ip_address(address.partition("%")[0])
        if not is_internal(ip):
            return ""
        if any(ip in ip_network(text) for text in self.networks):
            return ""
        allowed = is_local if is_local(ip) else is_internal
        # The upstream resolves names: all addresses count.
        own = filter(None, map(_addresses, self.configured_urls))
        if any(all(map(allowed, addresses)) for addresses in own):
            return ""
        place = "this machine or its link" if is_local(ip) else "a private network"
        return f"{ip} is an address of {place}"

    def refusal_of_host(self, host: str) -> str:
        """Return why one of the addresses of `host` is refused, or an empty text.

        Empty too if the name cannot be resolved.
        """
        return next(filter(None, (self.refusal(str(each)) for each in _resolved(host))), "")


def check_networks(texts: Iterable[str]) -> None:
    """Raise `ConfigError` for an invalid value of `allow_networks`."""
    from ipaddress import ip_network

    for text in texts:
        try:
            ip_network(text)
        except ValueError:
            raise ConfigError(
                f"allow_networks: {text!r} is not a network",
                hint='allow_networks = ["10.20.0.0/16"]',
            ) from None


@lru_cache(maxsize=64)
def _addresses(url: str) -> "tuple[Address, ...]":
    """Return the addresses of a URL's host, cached; none if it cannot be resolved.

    Those of this machine for a path.
    """
    if "://" in url:
        try:
            host = split_url(url).hostname
        except ValueError:
            return ()
    else:
        shell = re.match(_SHELL_HOST, url)
        host = shell[1].strip("[]") if shell else None
    return _resolved(host or _THIS_MACHINE)


def _resolved(host: str) -> "tuple[Address, ...]":
    """Resolve a host name; return no addresses if that fails."""
    from ipaddress import ip_address

    try:
        infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(ip_address(str(each[4][0]).partition("%")[0]) for each in infos)
