"""Content URLs, checked once, and then safe on a command line.

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

from huai_client.config.load import RankedUrl
from huai_program.urls import masked, same_service, service_of
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
_FIRST = -1
"""Priorities behind and before all that can be configured."""
_KINDS = (
    "use rsync://HOST/MODULE, HOST::MODULE, https://HOST/PATH, http://HOST/PATH, [USER@]HOST:PATH "
    "or /ABSOLUTE/PATH"
)
_NO_LOGIN = "put a login for HTTP into ~/.netrc or into the file of http_headers"


class ContentUrlError(HuaiError):
    """A content URL that must not be used."""

    exit_code = ExitCode.CONFIG


class Transport(Enum):
    """The kinds of connections to content."""

    DAEMON = "rsync daemon"
    SHELL = "remote shell"
    LOCAL = "local path"
    HTTP = "web server"


UPSTREAM_MAY_NAME = (Transport.DAEMON, Transport.HTTP)
"""With a local path or a shell login of its choice an upstream could make this machine publish its
own files, or use its keys."""


class ContentUrl(NamedTuple):
    """The URL of a module's content; make one with `parse`."""

    transport: Transport
    source: str
    """rsync's source argument, or the URL of the folder; with a slash at its end."""
    own: bool = False
    """True if the administrator named it: only such a URL gets passwords and logins."""
    priority: int = 1
    """URLs of a higher number are tried for files that the others lack."""
    share: int = 0
    """Share of the files, among URLs of equal priority; 0: files that the others lack."""

    @classmethod
    def parse(cls, text: str) -> "ContentUrl":
        """Parse `rsync://host[:port]/module[/path]`, `host::module`, `http[s]://host[:port][/path]`.

        Or `[user@]host:path`, or `/path`.  Raises `ContentUrlError` for anything else.
        """
        if _CONTROL.search(text) or len(text.encode("utf-8", "surrogateescape")) > _BYTES_MAX:
            raise ContentUrlError(
                f"a content URL is too long or contains control characters: {masked(text)[:80]!r}"
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
        """The machine, without user and port; empty for this one."""
        if self.transport is Transport.LOCAL:
            return ""
        match = _HOST_PART.match(self.source)
        return match[1] if match else ""

    @property
    def service(self) -> str:
        """Scheme, host and port, which all modules of a server share; empty for this machine."""
        if self.transport is Transport.DAEMON:
            daemon = self.source.startswith(_SCHEME)
            return service_of(self.source if daemon else _SCHEME + self.host)
        if self.transport is Transport.HTTP:
            return service_of(self.source)
        return f"ssh://{self.host.lower()}" if self.host else ""

    def __str__(self) -> str:
        return self.source  # no kind of content URL contains a password


def _transport(text: str) -> Transport | None:
    """Return the transport of an address; None if it is unsafe or of no known form."""
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


def own_urls(ranked_urls: Iterable[RankedUrl]) -> list[ContentUrl]:
    """Return the administrator's URLs, by priority; raises `ContentUrlError` for an invalid one."""
    urls = [
        _own(each.url)._replace(own=True, priority=each.priority, share=each.share)
        for each in ranked_urls
    ]
    return sorted(urls, key=lambda url: url.priority)


def _own(text: str) -> ContentUrl:
    """Parse a configured content URL; raises `ContentUrlError` if it may contain a password."""
    # "http://me:1/2@host" and "http:/me:2@host" are URLs whose path has half of a password in it.
    if text.lower().startswith(("http:", "https:")) and masked(text) != text:
        reason = f"not a content URL, since it may contain a password: {masked(text)!r}"
        raise ContentUrlError(reason, hint=f"{_NO_LOGIN}; write %40 for an @ of a path")
    return ContentUrl.parse(text)


def upstream_urls(texts: Iterable[str]) -> list[ContentUrl]:
    """Return the upstream's permitted content URLs, rsync daemons first.

    Raises `ContentUrlError` if there are none.  A web server without HTTP/2 needs a round trip for
    each small file, and sends no differences of a changed one.
    """
    permitted = [url for text in texts for url in _parse_permitted(text)]
    usable = sorted(permitted, key=lambda url: url.transport is not Transport.DAEMON)
    if not usable:
        raise ContentUrlError(
            "the upstream names no content URL that may be used",
            hint="the upstream sets one with `huai-server add --content-url rsync://HOST/MODULE`; "
            "here content_urls in client.toml does",
        )
    return usable


def stated_url(text: str, metadata_urls: Iterable[str]) -> ContentUrl | None:
    """Return the content URL that a server states, or None unless it is of HTTP and permitted.

    It is `own`, so that it gets logins, if it is at the service of one of `metadata_urls`.
    """
    own = any(same_service(text, url) for url in metadata_urls)
    urls = [url for url in _parse_permitted(text) if url.transport is Transport.HTTP]
    return urls[0]._replace(own=own) if urls else None


def mirror_urls(
    texts: Iterable[str], other_urls: Iterable[ContentUrl], *, first: bool = False
) -> list[ContentUrl]:
    """Return the permitted mirrors, without `other_urls`, in order; malformed ones are dropped.

    They have the last priority, or with `first` the first one.  Only for files that a digest
    proves.
    """
    known_sources = {url.source for url in other_urls}
    permitted = [url for text in texts for url in _parse_permitted(text)]
    priority = _FIRST if first else _LAST
    return [url._replace(priority=priority) for url in permitted if url.source not in known_sources]


def _parse_permitted(text: str) -> Iterator[ContentUrl]:
    """Yield the URL if an upstream may name it; later versions may have other kinds."""
    with suppress(ContentUrlError):
        url = ContentUrl.parse(text)
        if url.transport in UPSTREAM_MAY_NAME:
            yield url
