"""The table `[modules.NAME.tls]` of client.toml: client certificate and authorities for HTTPS.

Imports very little: each poll reads the table.  `config_check` reads the files.

Rule to keep: both are used only for the hosts that the module's table names in `url` and
`content_urls`, and never for other URLs of the upstream or redirect targets.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import msgspec
from msgspec import Struct

from huai_program.configuration import ConfigError
from huai_program.tables import PATH, Example, convert, example
from huai_program.urls import split_url
from huai_schema.errors import ExitCode, HuaiError

if TYPE_CHECKING:
    import ssl

_OTHERS = 0o007
_HTTPS = "https://"
_OTHER_NAME = (
    "the certificate is for other names: write one of them into the URL, or have this one added"
)
_READABLE = "the user who runs huai-client must be able to read it"
TLS_HINT = "certificates and key are PEM, and belong together; the key has no passphrase"
_CERTIFICATE_HINTS = (
    ("match", _OTHER_NAME),
    (
        "expired",
        "inform the server's administrator; if others accept it, check the clock of this machine",
    ),
    ("not yet valid", "check the clock of this machine"),
    ("revoked", "inform the server's administrator"),
)
"""A word of the reason, with its hint."""


_Path = Annotated[str, msgspec.Meta(pattern=PATH)]


class Tls(msgspec.Struct, frozen=True, omit_defaults=True):
    """The PEM files for the hosts that a module's table names."""

    certificate: Annotated[_Path, Example('"/etc/huai/client.pem"')] = ""
    """The client's certificate with the chain to its authority, or empty."""
    key: Annotated[_Path, Example('"/etc/huai/client.key"')] = ""
    """The private key of the certificate."""
    ca: Annotated[_Path, Example('"/etc/huai/ca.pem"')] = ""
    """The trusted authorities; empty for the system's."""


NO_TLS = Tls()


class TlsError(HuaiError):
    """The files for TLS cannot be used."""

    exit_code: ClassVar[ExitCode] = ExitCode.CONFIG


class TlsFiles(Struct, frozen=True):
    """The files of `tls`, with the hosts that they are for."""

    hosts: tuple[str, ...] = ()
    """The host names, sorted."""
    files: Tls = NO_TLS

    @classmethod
    def of(cls, files: Tls | None, urls: Iterable[str]) -> Self:
        """Return the files for those hosts of `urls` that use HTTPS."""
        if files is None:
            return cls()
        hosts = {_host(url) for url in urls if url.lower().startswith(_HTTPS)}
        return cls(tuple(sorted(hosts - {""})), files)

    def at(self, url: str) -> Tls:
        """Return the files for the host of `url`; `NO_TLS` for other hosts."""
        return self.files if self.hosts and _host(url) in self.hosts else NO_TLS


SYSTEM_TLS = TlsFiles()
"""The system's authorities, without a client certificate."""


def convert_tls(place: str, table: object) -> Tls:
    """Convert a table; raises `ConfigError` with `place` and the key that is wrong or missing."""
    tls = convert(place, table, Tls)
    for key, other in (("certificate", tls.key), ("key", tls.certificate)):
        if other and not getattr(tls, key):
            raise ConfigError(f"{place}: {key} is missing", hint=example(Tls, key))
    return tls


def check_key(files: Tls) -> None:
    """Raise `TlsError` if a private key is named whose file is missing or open to every user."""
    if not files.key:
        return
    try:
        mode = os.stat(files.key).st_mode
    except OSError as error:
        raise TlsError(f"{files.key}: {error.strerror}", hint=_READABLE) from error
    if mode & _OTHERS:
        raise TlsError(
            f"{files.key}: every user may read or change this key",
            hint=f"chmod o= {files.key}, and replace the key if another user may have read it",
        )


def client_context(files: Tls) -> "ssl.SSLContext":
    """Return the TLS context with these files; raises `TlsError` if they cannot be used."""
    import ssl  # takes long to load, and is not needed inside a network

    check_key(files)
    place = files.ca
    try:
        context = ssl.create_default_context(cafile=files.ca or None)
        if files.certificate:
            place = files.certificate
            # OpenSSL would ask for a passphrase at the terminal.
            context.load_cert_chain(files.certificate, files.key, password=lambda: "")
    except ssl.SSLError as error:
        raise TlsError(f"{place}: {error.reason or 'cannot be read'}", hint=TLS_HINT) from error
    except OSError as error:
        raise TlsError(f"{place}: {error.strerror}", hint=_READABLE) from error
    return context


def certificate_hint(reason: str) -> str:
    """Return the hint for a certificate that OpenSSL or libcurl does not accept."""
    lower = reason.lower()
    for words, hint in _CERTIFICATE_HINTS:
        if words in lower:
            return hint
    return "name your own authority in client.toml, tls = {ca = FILE}, or in SSL_CERT_FILE"


def _host(url: str) -> str:
    """Return the host of a URL, or an empty text if it cannot be parsed."""
    try:
        return split_url(url).hostname or ""
    except ValueError:  # the request reports the error
        return ""
