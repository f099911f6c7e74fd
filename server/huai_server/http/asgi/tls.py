"""TLS of a server: its certificate and key, read again when they are renewed.

A renewed certificate is for connections that begin from then on; others keep theirs.  Files that do
not fit each other, as halfway through a renewal, are a line in the log, and the old ones stay.
"""

import asyncio
import logging
import os
import ssl
from pathlib import Path
from typing import ClassVar, NamedTuple

from huai_schema.errors import ExitCode, HuaiError
from huai_server.http.asgi.threads import in_thread
from huai_server.state.file_stamp import FileStamp, file_stamp

_LOOK_SECONDS = 2.0
"""Between two looks at the files."""
_OTHERS = 0o007
_log = logging.getLogger(__name__)


class TlsError(HuaiError):
    """The files of TLS cannot be used."""

    exit_code: ClassVar[ExitCode] = ExitCode.CONFIG


class TlsFiles(NamedTuple):
    """What TLS needs, as PEM."""

    certificate: Path
    """With the chain that leads to its authority."""
    key: Path
    client_ca: Path | None
    """Who signs the certificates of clients; None: they are asked for none."""


class Tls:
    """The context for the next connection."""

    def __init__(self, files: TlsFiles) -> None:
        """Raises `TlsError`."""
        self._files = files
        self._stamps = _stamps(files)
        self.context = _context(files)

    async def follow(self) -> None:
        """Read the files again whenever they change, until this is cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            stamps = _stamps(self._files)
            if stamps != self._stamps:
                self._stamps = stamps
                try:
                    self.context = await in_thread(lambda: _context(self._files))
                except TlsError as error:
                    _log.error("the certificate stays as it was: %s", error.message)
                else:
                    _log.info("%s: a renewed certificate", self._files.certificate)


def _stamps(files: TlsFiles) -> list[FileStamp]:
    return [file_stamp(path) for path in filter(None, files)]


def _context(files: TlsFiles) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    place = files.key
    try:
        if files.key.stat().st_mode & _OTHERS:
            raise TlsError(
                f"{files.key}: every user may read or change this key",
                hint=f"chmod o= {files.key}, and make a new key if others could read it",
            )
        # A key with a passphrase would ask for it at the terminal.
        place = files.certificate
        made.load_cert_chain(files.certificate, files.key, password=lambda: "")
        if files.client_ca is not None:
            place = files.client_ca
            made.load_verify_locations(files.client_ca)
            made.verify_mode = ssl.CERT_OPTIONAL
    except ssl.SSLError as error:
        raise TlsError(
            f"{place}: {error.reason or 'it cannot be read'}",
            hint="the certificate with its chain and the key are PEM, and belong together; the key "
            "has no passphrase",
        ) from error
    except OSError as error:
        raise TlsError(
            f"{error.filename or place}: {error.strerror or os.strerror(error.errno or 0)}",
            hint="let the user who runs `serve` read it",
        ) from error
    return made
