"""Where content comes from: a URL checked once, and safe on a command line from then on.

Pure.  URLs may come from an upstream's metadata, so they are hostile input: nothing
here may be taken for an option by rsync or ssh, or be expanded by a remote shell.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from huai_client.state.hosts import service_of
from huai_schema.codec.descriptor import Descriptor
from huai_schema.errors import ExitCode, HuaiError

_USER = r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?"
_HOST = r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?\])"
_DAEMON = re.compile(rf"(?P<host>rsync://{_USER}{_HOST}(?::[0-9]{{1,5}})?)/(?P<path>.+)")
_DOUBLE_COLON = re.compile(rf"(?P<host>{_USER}{_HOST})::(?P<path>.+)")
_SHELL = re.compile(rf"{_USER}{_HOST}:(?!//)[A-Za-z0-9/._~+@%=,][A-Za-z0-9/._~+@%=,:-]*")
_SCHEME = "rsync://"
_HOST_PART = re.compile(rf"(?:{_SCHEME})?{_USER}({_HOST})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_REMOTE_PATTERN = re.compile(r"[*?\[\\]")
_BYTES_MAX = 4096


class ContentUrlError(HuaiError):
    """A content URL that rsync must not be given."""

    exit_code = ExitCode.CONFIG


class Transport(Enum):
    """How rsync gets there."""

    DAEMON = "rsync daemon"
    SHELL = "remote shell"
    LOCAL = "local path"


class ContentUrl(NamedTuple):
    """A place that holds a module's content; make one with `parse`."""

    transport: Transport
    source: str
    """rsync's source argument, ended by a slash."""
    own: bool = False
    """Whether the administrator named it: only such a URL is given passwords and logins."""

    @classmethod
    def parse(cls, text: str) -> "ContentUrl":
        """Read `rsync://host[:port]/module[/path]`, `host::module`, `[user@]host:path` or `/path`.

        Raises `ContentUrlError` for anything else.
        """
        if _CONTROL.search(text) or len(text.encode("utf-8", "surrogateescape")) > _BYTES_MAX:
            raise ContentUrlError(
                f"a content URL is over-long or holds control characters: {text[:80]!r}"
            )
        transport = _transport(text)
        if transport is None or ".." in text.split("/"):
            raise ContentUrlError(
                f"not a content URL: {text!r}",
                hint="use rsync://HOST/MODULE, HOST::MODULE, [USER@]HOST:PATH or /ABSOLUTE/PATH",
            )
        return cls(transport, text if text.endswith("/") else text + "/")

    @property
    def module(self) -> tuple[str, bytes]:
        """The source for rsync without the folders below a daemon's module, and those folders.

        Daemons of rsync 3.5.0 without a chroot find no file that --files-from names below a source
        deeper than the module: "file has vanished" for each.  From the module's top they do.
        """
        daemon = _DAEMON.fullmatch(self.source) or _DOUBLE_COLON.fullmatch(self.source)
        if self.transport is not Transport.DAEMON or daemon is None:
            return self.source, b""
        name, *below = [part for part in daemon["path"].split("/") if part not in {"", "."}]
        top = self.source[: daemon.start("path")] + name + "/"
        return top, b"".join(os.fsencode(part) + b"/" for part in below)

    @property
    def host(self) -> str:
        """The machine, without user and port; empty: this one."""
        if self.transport is Transport.LOCAL:
            return ""
        found = _HOST_PART.match(self.source)
        return found[1] if found else ""

    @property
    def service(self) -> str:
        """What has to answer there, whichever module it is asked for; empty: nothing."""
        if self.transport is Transport.DAEMON:
            daemon = self.source.startswith(_SCHEME)
            return service_of(self.source if daemon else _SCHEME + self.host)
        return f"ssh://{self.host.lower()}" if self.host else ""

    def __str__(self) -> str:
        return self.source


def _transport(text: str) -> Transport | None:
    if text.startswith("/"):
        return Transport.LOCAL
    daemon = _DAEMON.fullmatch(text) or _DOUBLE_COLON.fullmatch(text)
    if daemon:
        path = daemon["path"]
        # The server expands patterns; a module's name cannot be empty.
        unsafe = path.startswith(("/", "-", ":")) or _REMOTE_PATTERN.search(path)
        return None if unsafe else Transport.DAEMON
    return Transport.SHELL if _SHELL.fullmatch(text) else None


def upstream_urls(descriptor: Descriptor) -> list[ContentUrl]:
    """Where the upstream says that the content is.

    An upstream may only name rsync daemons: a local path or a shell login that it chose
    would make this machine hand out its own files, or its keys.
    """
    usable = [url for text in descriptor.content_urls for url in _daemon(text)]
    if not usable:
        raise ContentUrlError(
            "the upstream names no content URL that may be used",
            hint="the upstream sets one with `huai-server add --content-url rsync://HOST/MODULE`; "
            "here content_urls in client.toml does",
        )
    return usable


def _daemon(text: str) -> Iterator[ContentUrl]:
    """The URL if it is of an rsync daemon; other kinds may come with later versions."""
    with suppress(ContentUrlError):
        url = ContentUrl.parse(text)
        if url.transport is Transport.DAEMON:
            yield url
