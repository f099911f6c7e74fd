"""The table `[modules.NAME.tls]` of client.toml: own certificates for HTTPS.

What a client shows of itself, and which authorities it believes.  Loads next to nothing: each poll
reads the table.  `config_check` looks at the files.

Rule to keep: both are for the hosts that the module's table names in `url` and `content_urls`, and
for no other one, wherever the upstream or a redirection leads.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple, Self

import msgspec

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
TLS_HINT = "certificates and key are PEM, and belong together; the key has no passphrase"
_CERTIFICATE_HINTS = (
    ("match", _OTHER_NAME),
    ("expired", "tell its administrator; if others accept it, check the clock of this machine"),
    ("not yet valid", "check the clock of this machine"),
    ("revoked", "tell its administrator"),
)
"""Words of the reason, and what to do."""


_Path = Annotated[str, msgspec.Meta(pattern=PATH)]


class Tls(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the hosts that the table of a module names are shown, and believed by (PEM files)."""

    certificate: Annotated[_Path, Example('"/etc/huai/client.pem"')] = ""
    """Of this client, with the chain that leads to its authority; empty: none is shown."""
    key: Annotated[_Path, Example('"/etc/huai/client.key"')] = ""
    """Its private key."""
    ca: Annotated[_Path, Example('"/etc/huai/ca.pem"')] = ""
    """The authorities that count there, instead of the system's; empty: the system's."""


NO_TLS = Tls()


class TlsError(HuaiError):
    """The files of TLS cannot be used."""

    exit_code: ClassVar[ExitCode] = ExitCode.CONFIG


class TlsFiles(NamedTuple):
    """The files of `tls`, and the hosts that they are for."""

    hosts: tuple[str, ...] = ()
    """Sorted."""
    files: Tls = NO_TLS

    @classmethod
    def of(cls, files: Tls | None, urls: Iterable[str]) -> Self:
        """Those for the hosts of `urls`, as far as they are spoken to by HTTPS."""
        if files is None:
            return cls()
        hosts = {_host(url) for url in urls if url.lower().startswith(_HTTPS)}
        return cls(tuple(sorted(hosts - {""})), files)

    def at(self, url: str) -> Tls:
        """What counts at the host of `url`."""
        return self.files if self.hosts and _host(url) in self.hosts else NO_TLS


SYSTEM_TLS = TlsFiles()
"""No certificate, and the authorities of the system."""


def convert_tls(place: str, table: object) -> Tls:
    """The value of a table; `ConfigError` with the key that is wrong."""
    made = convert(place, table, Tls)
    for key, other in (("certificate", made.key), ("key", made.certificate)):
        if other and not getattr(made, key):
            raise ConfigError(f"{place}: {key} is missing", hint=example(Tls, key))
    return made


def check_key(files: Tls) -> None:
    """Raise `TlsError` if there is a private key that others may read, or that is not there."""
    if not files.key:
        return
    try:
        mode = os.stat(files.key).st_mode
    except OSError as error:
        raise TlsError(
            f"{files.key}: {error.strerror}", hint="let the user who runs huai-client read it"
        ) from error
    if mode & _OTHERS:
        raise TlsError(
            f"{files.key}: every user may read or change this key",
            hint=f"chmod o= {files.key}, and make a new key if others could read it",
        )


def client_context(files: Tls) -> "ssl.SSLContext":
    """How to speak TLS with these files; `TlsError` if they cannot be used."""
    import ssl  # a mirror in the same building has no need of it, and it takes long to load

    check_key(files)
    place = files.ca
    try:
        made = ssl.create_default_context(cafile=files.ca or None)
        if files.certificate:
            place = files.certificate
            # A key with a passphrase would ask for it at the terminal.
            made.load_cert_chain(files.certificate, files.key, password=lambda: "")
    except ssl.SSLError as error:
        raise TlsError(
            f"{place}: {error.reason or 'it cannot be read'}",
            hint=TLS_HINT,
        ) from error
    except OSError as error:
        raise TlsError(
            f"{place}: {error.strerror}", hint="let the user who runs huai-client read it"
        ) from error
    return made


def certificate_hint(reason: str) -> str:
    """Return what to do about a certificate that OpenSSL or libcurl does not accept."""
    said = reason.lower()
    for words, hint in _CERTIFICATE_HINTS:
        if words in said:
            return hint
    return "an authority of your own stands in client.toml, tls = {ca = FILE}, or in SSL_CERT_FILE"


def _host(url: str) -> str:
    try:
        return split_url(url).hostname or ""
    except ValueError:  # it is refused where it is asked
        return ""
