"""One transfer of libcurl: certificates, proxy, and the addresses that it may connect to.

Rule: no exception leaves a callback, as libcurl would not know what to do with it; it is kept in
`broken`, and raised by whoever runs the loop.
"""

import socket
from typing import Protocol

import pycurl

from huai_client.config.proxies import Proxy
from huai_client.config.reach import Reach
from huai_client.config.tls import Tls
from huai_program.authorities import trust_authorities
from huai_schema import __version__

AGENT = f"huai-client/{__version__}"
_SUPPRESS_CONNECT_HEADERS = 265
"""CURLOPT_SUPPRESS_CONNECT_HEADERS, which pycurl has no name for: what a proxy says about a tunnel
is no answer of the other side."""
_BUFFER = 256 << 10


class _SocketAddress(Protocol):
    """The address that pycurl is about to connect to."""

    family: int
    socktype: int
    protocol: int
    addr: tuple[str | int, ...]


class _Opened:
    """A socket that pycurl takes a duplicate of."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened

    def fileno(self) -> int:
        return self._socket.fileno()

    def __del__(self) -> None:
        self._socket.close()


class Handle:
    """A handle of libcurl, for one request at a time; to be closed."""

    def __init__(self, tls: Tls, reach: Reach | None) -> None:
        """`tls`: own certificates for the service that is asked.

        `reach`: where a connection may lead, unless it is one to a proxy; None: anywhere.
        """
        self.curl = pycurl.Curl()
        self.tls = tls
        self.reach = reach
        self.broken: BaseException | None = None
        """The exception that a callback raised."""
        self.refusal = ""
        """The reason for which an address was not connected to."""
        self._has_authorities = False
        for option, value in (
            (pycurl.USERAGENT, AGENT),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.BUFFERSIZE, _BUFFER),
            (pycurl.NOSIGNAL, 1),  # there are other threads
            (pycurl.FOLLOWLOCATION, 0),  # `redirection` knows where to, and without a login
            (pycurl.NETRC, pycurl.NETRC_IGNORED),  # it is read for the administrator's URLs alone
            (pycurl.PATH_AS_IS, 1),
            (_SUPPRESS_CONNECT_HEADERS, 1),
            (pycurl.SSL_VERIFYPEER, 1),
            (pycurl.SSL_VERIFYHOST, 2),
        ):
            self.curl.setopt(option, value)
        if tls.certificate:
            self.curl.setopt(pycurl.SSLCERT, tls.certificate)
            self.curl.setopt(pycurl.SSLKEY, tls.key)
            self.curl.setopt(pycurl.KEYPASSWD, "")  # else the terminal would be asked

    def close(self) -> None:
        """End the transfer."""
        self.curl.close()

    def set_proxy(self, proxy: Proxy | None) -> None:
        """Go through `proxy`, which then decides where that leads, or else where `reach` allows.

        libcurl would read the environment by rules of its own, and connect past both.
        """
        self.curl.setopt(pycurl.NOPROXY, "")
        self.curl.setopt(pycurl.PROXY, proxy.url.geturl() if proxy else "")
        if proxy:
            self.curl.unsetopt(pycurl.OPENSOCKETFUNCTION)
        else:
            self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)

    def set_url(self, address: str) -> None:
        """Ask `address`."""
        self.curl.setopt(pycurl.URL, address)
        if address[:6].lower() == "https:" and not self._has_authorities:
            # Once: content asks for one file after the other.
            trust_authorities(self.curl, self.tls.ca)
            self._has_authorities = True

    def _open_socket(self, _purpose: int, address: _SocketAddress) -> _Opened | int:
        try:
            self.refusal = self.reach.refusal(str(address.addr[0])) if self.reach else ""
            if not self.refusal:
                family, kind, protocol = address.family, address.socktype, address.protocol
                return _Opened(socket.socket(family, kind, protocol))
        except BaseException as error:  # noqa: BLE001 - see above
            self.broken = error
        return pycurl.SOCKET_BAD
