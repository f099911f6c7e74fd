"""Asks an rsync daemon, or rsync behind a remote shell, for the list of a tree or of some names.

The engine reads the list; this module connects, and passes on bytes both ways.  That rsync reads
no content: what it does is what it does for `rsync -an`.
"""

import os
import re
import select
import shlex
import socket
import tempfile
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import md5
from typing import NamedTuple

from huai_client.config.proxies import RSYNC_PROXY, Proxy, rsync_proxy
from huai_client.metadata.curl.errors import printable
from huai_client.metadata.http import (
    ListedUrl,
    NotServedError,
    UpstreamDownError,
    UpstreamError,
    UpstreamTimeoutError,
    basic_auth,
)
from huai_client.run.options import Deadline
from huai_native._native import EntryList, RsyncList
from huai_program.programs import started
from huai_program.urls import split_url

_PORT = 873
_PROTOCOL, _LEAST_PROTOCOL, _FRAMED_NAMES = 31, 30, 31
"""The newest protocol here; that of rsync 3.0.0; the first in which names are sent in frames."""
_PROTOCOL_MOST = 40
"""A larger number is a text that the remote shell prints."""
_VERSION_BYTES = 4
_CONNECT_SECONDS = 30.0
_LINE_BYTES = 4096
_GREETING_LINES = 1000
_READ_BYTES = 1 << 18
_NAMES_BYTES = 1 << 15
_DATA = 7 << 24
"""The header of a frame of data, with its length in the lower bytes."""
_CAPABILITIES = "e.iLsf"
"""Incremental lists, times of symlinks, and reports of errors at the end of a list."""
_ALWAYS = "lHogDtp"
_NO_FILTER = b"\0\0\0\0"


class ListOutcome(NamedTuple):
    """The outcome of a listing."""

    partial: bool
    """True if the daemon could not read something."""
    messages: tuple[str, ...]
    """Its last messages."""


class ListedDaemon:
    """A module of an rsync daemon, or a folder in it; or a folder behind a remote shell.

    Each list opens a connection, and closes it.  Methods raise `UpstreamError`, one of its kinds,
    or `TimeUpError` at the deadline.
    """

    def __init__(self, url: ListedUrl, *, timeout: float, deadline: Deadline) -> None:
        """Connect to nothing yet; `timeout` is in seconds."""
        self._url = url
        self._shell = url.settings.shell
        self._timeout = timeout
        self._deadline = deadline
        if self._shell:
            self._host, _, path = url.url.partition(":")
            self._module, self._folder = os.fsencode(path.rstrip("/")), b""
            return
        parts = split_url(url.url)
        module, _, folder = parts.path.strip("/").partition("/")
        self._address = (parts.hostname or "", parts.port or _PORT)
        self._proxy = rsync_proxy()
        self._user = parts.username or os.environ.get("USER") or "nobody"  # prose: as rsync does
        self._module = os.fsencode(module)
        self._folder = os.fsencode(folder + "/" if folder else "")

    def list_tree(self, entries: EntryList) -> ListOutcome:
        """Add all entries of the tree to `entries`; return if the list is partial, and why."""
        arguments = [f"-{_ALWAYS}r{_CAPABILITIES}".encode()]
        return self._list(arguments, self._folder, (), entries)

    def list_top(self, entries: EntryList) -> ListOutcome:
        """Add the entries of the folder itself, not those below its subfolders."""
        arguments = [f"-{_ALWAYS}d{_CAPABILITIES.replace('i', '')}".encode()]
        return self._list(arguments, self._folder, (), entries)

    def list_names(self, names: Iterable[bytes], entries: EntryList) -> ListOutcome:
        """Add the entries at these paths to `entries`, with all directories above them.

        Missing ones are left out.
        """
        flags = f"-{_ALWAYS}dR{_CAPABILITIES.replace('i', '')}"
        arguments = [flags.encode(), b"--files-from=-", b"--from0"]
        # After the first `./` names are relative to it, and the second makes rsync list the top.
        above = self._folder + b"././" if self._folder else b"./"
        below = (above + name for name in names)
        return self._list(arguments, b"", below, entries)

    def _list(
        self, arguments: list[bytes], folder: bytes, names: Iterable[bytes], entries: EntryList
    ) -> ListOutcome:
        """Log in, send rsync's arguments and `names`, and add what is listed to `entries`.

        `folder` and `names` are paths below the module.  Raises `UpstreamDownError` if the list is
        cut off or the connection breaks, `UpstreamTimeoutError` after silence.
        """
        top = b"%b/%b" % (self._module, folder)
        argv = [b"--server", b"--sender", *arguments, b".", top]
        start = self._start_by_shell if self._shell else self._start_by_daemon
        try:
            with start(argv) as (connection, protocol):
                reader = RsyncList(protocol, entries)
                is_named = b"--files-from=-" in arguments
                outgoing = _outgoing(names if is_named else None, protocol)
                self._exchange(connection, reader, outgoing)
        except TimeoutError as error:
            raise UpstreamTimeoutError(f"{self._url}: no response in time") from error
        except OSError as error:
            proxy = None if self._shell else self._proxy
            via, hint = (f"{proxy}: ", proxy.hint) if proxy else ("", "")
            message = f"{self._url}: {via}{error.strerror or error}"
            raise UpstreamDownError(message, hint=hint) from error
        messages = tuple(_text(each) for each in reader.messages())
        if not reader.is_complete:
            reason = messages[-1] if messages else "the connection was closed"
            raise UpstreamDownError(f"{self._url}: the list is cut off: {reason}")
        return ListOutcome(reader.is_partial, messages)

    @contextmanager
    def _start_by_shell(self, argv: list[bytes]) -> Iterator[tuple[socket.socket, int]]:
        """Start rsync at the host, until the end of the block; yields connection and protocol.

        Raises `UpstreamDownError` for anything but rsync, with the message of the remote shell.
        """
        command = [*self._shell, self._host, "rsync", *map(shlex.quote, map(os.fsdecode, argv))]
        connection, its_end = socket.socketpair()
        with connection, its_end, tempfile.TemporaryFile() as errors:
            connection.settimeout(self._deadline.bound(self._timeout))
            with started(command, stdin=its_end, stdout=its_end, stderr=errors):
                its_end.close()
                version = connection.recv(_VERSION_BYTES, socket.MSG_WAITALL)
                number = int.from_bytes(version, "little")
                if len(version) < _VERSION_BYTES or number > _PROTOCOL_MOST:
                    errors.seek(0)
                    reason = _text(errors.read(_LINE_BYTES)).splitlines()
                    raise UpstreamDownError(
                        f"{self._url}: {reason[-1] if reason else 'this is not rsync'}",
                        hint=f"{shlex.join(command[: -len(argv)])} --version",
                    )
                connection.sendall(_PROTOCOL.to_bytes(_VERSION_BYTES, "little"))
                yield connection, self._agree(b"%d" % number)

    @contextmanager
    def _start_by_daemon(self, argv: list[bytes]) -> Iterator[tuple[socket.socket, int]]:
        """Greet the daemon, and start its sender; yields the connection and the protocol."""
        with self._connection() as connection, connection.makefile("rb", 0) as lines:
            protocol = self._greet(connection, lines)
            connection.sendall(b"".join(each + b"\0" for each in argv) + b"\0")
            yield connection, protocol

    @contextmanager
    def _connection(self) -> Iterator[socket.socket]:
        """Yield a connection to the daemon, by its proxy if any; may raise `UpstreamError`."""
        seconds = self._deadline.bound(min(self._timeout, _CONNECT_SECONDS))
        proxy = self._proxy
        if proxy is None and os.environ.get(RSYNC_PROXY):
            raise UpstreamError(
                f"{self._url}: {RSYNC_PROXY} in the environment cannot be parsed",
                hint=f"{RSYNC_PROXY}=HOST:PORT, or USER:PASSWORD@HOST:PORT",
            )
        address = proxy.address if proxy else self._address
        with socket.create_connection(address, timeout=seconds) as connection:
            # Small answers are what the daemon waits for.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if proxy:
                self._pass(proxy, connection)
            yield connection

    def _pass(self, proxy: Proxy, connection: socket.socket) -> None:
        """Have the proxy connect to the daemon, as rsync does; or raise `UpstreamDownError`."""
        login = f"\r\nProxy-Authorization: {basic_auth(proxy.login)}" if proxy.login else ""
        host, port = self._address
        connection.sendall(f"CONNECT {host}:{port} HTTP/1.0{login}\r\n\r\n".encode())
        with connection.makefile("rb", 0) as lines:
            status = _line(lines)
            if not re.match(rb"HTTP/[0-9.]+ 2", status):
                reason = _text(status) or "it closed the connection"
                raise UpstreamDownError(f"{self._url}: {proxy}: {reason}", hint=proxy.hint)
            for _ in range(_GREETING_LINES):
                if not _line(lines).strip():
                    return
        raise UpstreamDownError(f"{self._url}: {proxy}: an endless response", hint=proxy.hint)

    def _greet(self, connection: socket.socket, lines: socket.SocketIO) -> int:
        """Exchange versions, name the module, log in; return the protocol.

        Raises `UpstreamError` if the daemon refuses, or is something else.
        """
        greeting = _line(lines)
        words = greeting.split()
        if not greeting.startswith(b"@RSYNCD: ") or len(words) < 2:
            raise UpstreamError(f"{self._url}: this is not an rsync daemon")
        protocol = self._agree(words[1].partition(b".")[0])
        connection.sendall(b"@RSYNCD: %d.0\n%b\n" % (_PROTOCOL, self._module))
        for _ in range(_GREETING_LINES):  # a message of the day
            line = _line(lines)
            if line == b"@RSYNCD: OK":
                return protocol
            if line.startswith(b"@RSYNCD: AUTHREQD "):
                connection.sendall(self._login(line.rpartition(b" ")[2]))
            elif line.startswith(b"@ERROR"):
                raise self._refused(_text(line))
            elif line.startswith(b"@RSYNCD: EXIT"):
                break
        raise UpstreamError(f"{self._url}: the daemon names no module")

    def _agree(self, number: bytes) -> int:
        """Return the protocol for an rsync whose newest one is `number`, in decimal.

        Raises `UpstreamError` if that is too old or not a number.
        """
        protocol = min(_PROTOCOL, int(number) if number.isdigit() else 0)
        if protocol < _LEAST_PROTOCOL:
            raise UpstreamError(
                f"{self._url}: its rsync speaks protocol {_text(number)}",
                hint=f"{_LEAST_PROTOCOL} is needed, of rsync 3.0.0 and newer",
            )
        return protocol

    def _login(self, challenge: bytes) -> bytes:
        """Return the response to a challenge, as rsync's `auth_client` makes it."""
        password = os.fsencode(os.environ.get("RSYNC_PASSWORD", ""))
        digest = md5(password + challenge, usedforsecurity=False).digest()
        return b"%b %b\n" % (os.fsencode(self._user), b64encode(digest).rstrip(b"="))

    def _refused(self, line: str) -> UpstreamError:
        """Return the error for a daemon's `@ERROR` line."""
        message = f"{self._url}: {line}"
        if "max connections" in line:
            return UpstreamDownError(message)
        if "nknown module" in line:
            return NotServedError(message, hint=f"rsync rsync://{self._address[0]}/ lists modules")
        if "auth failed" in line:
            return UpstreamError(message, hint="put the password into RSYNC_PASSWORD")
        return UpstreamError(message)

    def _exchange(
        self, connection: socket.socket, reader: RsyncList, outgoing: Iterator[bytes]
    ) -> None:
        """Pass on bytes both ways until the daemon closes the connection.

        Raises `UpstreamTimeoutError` after silence, `TimeUpError` at the deadline.
        """
        connection.settimeout(0)
        waiting = bytearray()
        more: Iterator[bytes] | None = outgoing
        while True:
            while more is not None and len(waiting) < _READ_BYTES:
                frame = next(more, None)
                if frame is None:
                    more = None
                else:
                    waiting += frame
            self._deadline.check("the tree is unchanged")
            writers = [connection] if waiting else []
            readable, writable, _ = select.select(
                [connection], writers, [], self._deadline.bound(self._timeout)
            )
            if not readable and not writable:
                raise UpstreamTimeoutError(f"{self._url}: no data for {self._timeout:.0f} s")
            if writable:
                del waiting[: connection.send(waiting)]
            if readable:
                try:
                    data = connection.recv(_READ_BYTES)
                except ConnectionError:
                    if reader.is_complete:
                        return
                    raise
                if not data:
                    return
                waiting += reader.feed(data)


def _outgoing(names: Iterable[bytes] | None, protocol: int) -> Iterator[bytes]:
    """Yield what the client sends at first: no filter, and the names, if any."""
    yield _frame(_NO_FILTER)
    if names is None:
        return
    is_framed = protocol >= _FRAMED_NAMES
    part = bytearray()
    for name in names:
        part += name + b"\0"
        if len(part) >= _NAMES_BYTES:
            yield _frame(part) if is_framed else bytes(part)
            part.clear()
    part += b"\0"
    yield _frame(part) if is_framed else bytes(part)


def _frame(data: bytes | bytearray) -> bytes:
    return (_DATA | len(data)).to_bytes(4, "little") + data


def _line(lines: socket.SocketIO) -> bytes:
    """Read a line, up to its end or `_LINE_BYTES`; returned without the newline."""
    line = b""
    while len(line) < _LINE_BYTES:
        byte = lines.read(1)
        if not byte or byte == b"\n":
            return line
        line += byte
    return line


def _text(data: bytes) -> str:
    return printable(data.decode("utf-8", "replace").strip())
