"""Where content comes from: a URL checked once, and safe on a command line from then on.

Pure.  URLs may come from an upstream's metadata, so they are hostile input: nothing
here may be taken for an option by rsync or ssh, or be expanded by a remote shell; and one of HTTP
is a host and a folder there, without a login, a query or a way up.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from huai_client.config.content_place import ContentPlace
from huai_program.urls import masked, service_of
from huai_schema.codec.descriptor import Descriptor
from huai_schema.codec.web_folder import HOST, is_web_folder
from huai_schema.errors import ExitCode, HuaiError

_USER = r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?"
_DAEMON = re.compile(rf"(?P<host>rsync://{_USER}{HOST}(?::[0-9]{{1,5}})?)/(?P<path>.+)")
_DOUBLE_COLON = re.compile(rf"(?P<host>{_USER}{HOST})::(?P<path>.+)")
_SHELL = re.compile(rf"{_USER}{HOST}:(?!//|[^/]*@)[A-Za-z0-9/._~+@%=,][A-Za-z0-9/._~+@%=,:-]*")
_SCHEME = "rsync://"
_HOST_PART = re.compile(rf"(?:{_SCHEME}|https?://)?{_USER}({HOST})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_REMOTE_PATTERN = re.compile(r"[*?\[\\]")
_BYTES_MAX = 4096
_LAST = 1_000_000
"""A priority behind those that can be configured."""
_KINDS = (
    "use rsync://HOST/MODULE, HOST::MODULE, https://HOST/PATH, http://HOST/PATH, [USER@]HOST:PATH "
    "or /ABSOLUTE/PATH"
)
_NO_LOGIN = "a login for HTTP stands in ~/.netrc or in the file of http_headers"


class ContentUrlError(HuaiError):
    """A content URL that must not be asked."""

    exit_code = ExitCode.CONFIG


class Transport(Enum):
    """How to get there."""

    DAEMON = "rsync daemon"
    SHELL = "remote shell"
    LOCAL = "local path"
    HTTP = "web server"


UPSTREAM_MAY_NAME = (Transport.DAEMON, Transport.HTTP)
"""A local path or a shell login that it chose would make this machine hand out its own files, or
its keys."""


class ContentUrl(NamedTuple):
    """A place that holds a module's content; make one with `parse`."""

    transport: Transport
    source: str
    """rsync's source argument, or the address of the folder; ended by a slash."""
    own: bool = False
    """Whether the administrator named it: only such a URL is given passwords and logins."""
    priority: int = 1
    """Those of a higher number are asked for what others do not bring."""
    share: int = 0
    """Of what is fetched, among those of equal priority; 0: what others do not bring."""

    @classmethod
    def parse(cls, text: str) -> "ContentUrl":
        """Read `rsync://host[:port]/module[/path]`, `host::module`, `http[s]://host[:port][/path]`.

        Or `[user@]host:path`, or `/path`.  Raises `ContentUrlError` for anything else.
        """
        if _CONTROL.search(text) or len(text.encode("utf-8", "surrogateescape")) > _BYTES_MAX:
            raise ContentUrlError(
                f"a content URL is over-long or holds control characters: {masked(text)[:80]!r}"
            )
        transport = _transport(text)
        if transport is None or ".." in text.split("/"):
            login = text.lower().startswith(("http://", "https://")) and "@" in text
            raise ContentUrlError(
                f"not a content URL: {masked(text)!r}", hint=_NO_LOGIN if login else _KINDS
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
        if self.transport is Transport.HTTP:
            return service_of(self.source)
        return f"ssh://{self.host.lower()}" if self.host else ""

    def __str__(self) -> str:
        return self.source  # no kind of content URL has a password in it


def _transport(text: str) -> Transport | None:
    if text.startswith("/"):
        return Transport.LOCAL
    daemon = _DAEMON.fullmatch(text) or _DOUBLE_COLON.fullmatch(text)
    if daemon:
        path = daemon["path"]
        # The server expands patterns; a module's name cannot be empty.
        unsafe = path.startswith(("/", "-", ":")) or _REMOTE_PATTERN.search(path)
        return None if unsafe else Transport.DAEMON
    if is_web_folder(text):
        return Transport.HTTP
    return Transport.SHELL if _SHELL.fullmatch(text) else None


def own_urls(places: Iterable[ContentPlace]) -> list[ContentUrl]:
    """The administrator's, by priority; raises `ContentUrlError`."""
    found = [
        _own(each.url)._replace(own=True, priority=each.priority, share=each.share)
        for each in places
    ]
    return sorted(found, key=lambda url: url.priority)


def _own(text: str) -> ContentUrl:
    # "http://me:1/2@host" and "http:/me:2@host" are URLs, of a path with half of a password in it.
    if text.lower().startswith(("http:", "https:")) and masked(text) != text:
        reason = f"not a content URL, since a password may be in it: {masked(text)!r}"
        raise ContentUrlError(reason, hint=f"{_NO_LOGIN}; write %40 for an @ of a path")
    return ContentUrl.parse(text)


def upstream_urls(texts: Iterable[str]) -> list[ContentUrl]:
    """Where the upstream says that the content is, rsync daemons first.

    A web server without HTTP/2 takes a round trip for each small file, and of a changed one it has
    no differences.
    """
    named = [url for text in texts for url in _named(text)]
    usable = sorted(named, key=lambda url: url.transport is not Transport.DAEMON)
    if not usable:
        raise ContentUrlError(
            "the upstream names no content URL that may be used",
            hint="the upstream sets one with `huai-server add --content-url rsync://HOST/MODULE`; "
            "here content_urls in client.toml does",
        )
    return usable


def mirror_urls(descriptor: Descriptor, others: Iterable[ContentUrl]) -> list[ContentUrl]:
    """The mirrors that the upstream names, without `others`; for what a digest proves only.

    They come after all others.
    """
    known = {url.source for url in others}
    named = [url for text in descriptor.mirrors for url in _named(text)]
    return [url._replace(priority=_LAST) for url in named if url.source not in known]


def _named(text: str) -> Iterator[ContentUrl]:
    """The URL if an upstream may name it; other kinds may come with later versions."""
    with suppress(ContentUrlError):
        url = ContentUrl.parse(text)
        if url.transport in UPSTREAM_MAY_NAME:
            yield url
