"""A transfer of libcurl: certificates, proxy, and the addresses that it may connect to.

Rule: no exception leaves a callback, as libcurl could not handle it; it is kept in `broken`, and
raised by the code that runs the loop.
"""

import socket
from typing import Protocol

import pycurl

from huai_client.config.allowed_addresses import AllowedAddresses
from huai_client.config.proxies import Proxy
from huai_client.config.tls import Tls
from huai_program.authorities import trust_authorities
from huai_schema import __version__

AGENT = f"huai-client/{__version__}"
_SUPPRESS_CONNECT_HEADERS = 265
"""CURLOPT_SUPPRESS_CONNECT_HEADERS, which pycurl does not name: the headers of a proxy about a
tunnel do not belong to the response."""
_BUFFER = 256 << 10


class _SocketAddress(Protocol):
    family: int
    socktype: int
    protocol: int
    addr: tuple[str | int, ...]


class _Opened:
    """A socket that pycurl takes a duplicate of."""

    def __init__(self, source: socket.socket) -> None:
        self._socket = source

    def fileno(self) -> int:
        return self._socket.fileno()

    def __del__(self) -> None:
        self._socket.close()


class Handle:
    """A handle of libcurl, for one request at a time.  Close it when done."""

    def __init__(self, tls: Tls, allowed_addresses: AllowedAddresses | None) -> None:
        """`tls`: certificates configured for the service.

        `allowed_addresses` concern connections other than to a proxy; None: any address.
        """
        self.curl = pycurl.Curl()
        self.tls = tls
        self.allowed_addresses = allowed_addresses
        self.broken: BaseException | None = None
        """The exception that a callback raised."""
        self.refusal = ""
        """The reason why an address is not permitted."""
        self._has_authorities = False
        for option, value in (
            (pycurl.USERAGENT, AGENT),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.BUFFERSIZE, _BUFFER),
            (pycurl.NOSIGNAL, 1),  # there are other threads
            (pycurl.FOLLOWLOCATION, 0),  # `head` checks the target, and the login is dropped
            (pycurl.NETRC, pycurl.NETRC_IGNORED),  # it is for the administrator's URLs alone
            (pycurl.PATH_AS_IS, 1),
            (_SUPPRESS_CONNECT_HEADERS, 1),
            (pycurl.SSL_VERIFYPEER, 1),
            (pycurl.SSL_VERIFYHOST, 2),
        ):
            self.curl.setopt(option, value)
        if tls.certificate:
            self.curl.setopt(pycurl.SSLCERT, tls.certificate)
            self.curl.setopt(pycurl.SSLKEY, tls.key)
            self.curl.setopt(pycurl.KEYPASSWD, "")  # else libcurl would prompt on the terminal

    def close(self) -> None:
        """Free the handle, which ends its transfer."""
        self.curl.close()

    def set_proxy(self, proxy: Proxy | None) -> None:
        """Use `proxy`, which then decides the addresses; without one `allowed_addresses` does.

        libcurl would follow the environment by rules of its own, and bypass both.
        """
        self.curl.setopt(pycurl.NOPROXY, "")
        self.curl.setopt(pycurl.PROXY, proxy.url.geturl() if proxy else "")
        if proxy:
            self.curl.unsetopt(pycurl.OPENSOCKETFUNCTION)
        else:
            self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)

    def set_url(self, address: str) -> None:
        """Set the URL of the request, and for the first of HTTPS the trusted authorities."""
        self.curl.setopt(pycurl.URL, address)
        if address[:6].lower() == "https:" and not self._has_authorities:
            # Once: a handle is used for one content file after the other.
            trust_authorities(self.curl, self.tls.ca)
            self._has_authorities = True

    def _open_socket(self, _purpose: int, address: _SocketAddress) -> _Opened | int:
        """Open a socket, or return `SOCKET_BAD` with the reason in `refusal` or `broken`."""
        try:
            allowed = self.allowed_addresses
            self.refusal = allowed.refusal(str(address.addr[0])) if allowed else ""
            if not self.refusal:
                family, kind, protocol = address.family, address.socktype, address.protocol
                return _Opened(socket.socket(family, kind, protocol))
        except BaseException as error:  # noqa: BLE001 - see above
            self.broken = error
        return pycurl.SOCKET_BAD
