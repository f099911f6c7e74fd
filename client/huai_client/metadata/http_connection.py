"""Connections for HTTP: to the host or the proxy that the environment names, with TLS for https.

`http_proxy`, `https_proxy`, `no_proxy` mean what they mean to urllib, which reads them.
"""

import binascii
import socket
import time
from typing import NamedTuple
from urllib.parse import SplitResult, unquote_to_bytes

from huai_client.config.proxies import Proxy, ProxyError, proxy_for
from huai_client.config.reach import Reach
from huai_client.config.tls import NO_TLS, SYSTEM_TLS, Tls, TlsFiles, client_context
from huai_program.urls import split_url

_ADDRESSES = 8
"""Of one host, that are tried."""
_PORTS = {"http": 80, "https": 443}


class NotTrustedError(OSError):
    """The certificate of the other side is not valid here."""


class InternalAddressError(OSError):
    """A redirection leads to an address where nobody may send this program."""


class NotTlsError(OSError):
    """The other side does not speak TLS."""


class Route(NamedTuple):
    """How to get to an address."""

    url: SplitResult
    proxy: Proxy | None
    tls: TlsFiles = SYSTEM_TLS

    @classmethod
    def of(cls, url: str, tls: TlsFiles = SYSTEM_TLS) -> "Route":
        """The route to `url`; `ValueError` if it is no address of HTTP."""
        target = split_url(url)
        if target.scheme not in _PORTS or not target.hostname:
            raise ValueError("not an address of HTTP")
        return cls(target, proxy_for(target), tls)

    @property
    def tunnels(self) -> bool:
        """Whether the proxy only passes on what comes and goes."""
        return self.proxy is not None and self.url.scheme == "https"

    @property
    def secured_host(self) -> str:
        """Whom a certificate has to name; empty: there is no TLS."""
        other = self.url if self.proxy is None or self.tunnels else self.proxy.url
        return other.hostname or "" if other.scheme == "https" else ""

    @property
    def certificates(self) -> Tls:
        """Those of our own that count on the way: none for a proxy that speaks TLS itself."""
        if self.proxy is not None and not self.tunnels:
            return NO_TLS
        return self.tls.at(self.url.geturl())

    @property
    def place(self) -> tuple[object, ...]:
        """Where it leads, whatever is asked for there."""
        return self.url.scheme, self.url.hostname, port_of(self.url), self.proxy, self.tls

    @property
    def target(self) -> str:
        """What stands in the request: where the other side is to look."""
        where = self.url.path or "/"
        if self.proxy is not None and not self.tunnels:
            where = f"http://{host_and_port(self.url)}{where}"
        return f"{where}?{self.url.query}" if self.url.query else where

    @property
    def proxy_login(self) -> str:
        """The header's value that the proxy wants; empty: none."""
        if self.proxy is None or self.proxy.url.username is None:
            return ""
        given = f"{self.proxy.url.username}:{self.proxy.url.password or ''}"
        return basic(unquote_to_bytes(given))

    def connect(self, timeout: float, reach: Reach | None = None) -> socket.socket:
        """To the proxy, or to the host itself, as far as `reach` allows; without TLS.

        Raises `ProxyError` if the proxy cannot be reached, `InternalAddressError` if the host may
        not.
        """
        if self.proxy is None:
            return connect(self.url.hostname or "", port_of(self.url), timeout, reach)
        url = self.proxy.url
        try:
            return connect(url.hostname or "", port_of(url), timeout)
        except OSError as error:
            raise ProxyError(self.proxy, error.strerror or str(error)) from error


def basic(login: bytes) -> str:
    """USER:PASSWORD as RFC 7617 has it."""
    return f"Basic {binascii.b2a_base64(login, newline=False).decode()}"


def host_and_port(url: SplitResult) -> str:
    """As the Host header has it: without a login; the port if it is not the usual one."""
    host = url.hostname or ""
    if not host.isascii():
        host = host.encode("idna").decode()
    if ":" in host:
        host = f"[{host.partition('%')[0]}]"
    return host if url.port in (None, _PORTS[url.scheme]) else f"{host}:{url.port}"


def port_of(url: SplitResult) -> int:
    """The port to connect to."""
    return _PORTS[url.scheme] if url.port is None else url.port


def connect(host: str, port: int, timeout: float, reach: Reach | None = None) -> socket.socket:
    """As `socket.create_connection`, but not for ever by trying one address after the other."""
    until, failed = time.monotonic() + timeout, OSError("the host has no address")
    # As bytes: for text the socket module loads a codec for names in other scripts.
    name = host.encode("ascii") if host.isascii() else host
    for family, kind, protocol, _, place in socket.getaddrinfo(name, port, 0, socket.SOCK_STREAM)[
        :_ADDRESSES
    ]:
        left = until - time.monotonic()
        if left <= 0:
            break
        if reach and (refusal := reach.refusal(str(place[0]))):
            failed = InternalAddressError(refusal)
            continue
        found = socket.socket(family, kind, protocol)
        try:
            found.settimeout(left)
            found.connect(place)
        except OSError as error:
            found.close()
            failed = error
        else:
            found.settimeout(timeout)
            return found
    raise failed


def secured(sock: socket.socket, host: str, files: Tls) -> socket.socket:
    """`sock` with TLS, after the certificate of `host` has been checked.

    Raises `TlsError` for `files` that cannot be used.
    """
    import ssl  # a mirror in the same building has no need of it, and it takes long to load

    context = client_context(files)
    context.set_alpn_protocols(["http/1.1"])
    try:
        return context.wrap_socket(sock, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        raise NotTrustedError(str(error)) from error
    except ssl.SSLError as error:
        if "WRONG_VERSION_NUMBER" in str(error):
            raise NotTlsError(str(error)) from error
        raise
