"""TLS of a server: its certificate and key, read again when they are renewed.

A renewed certificate is for new connections; others keep theirs.  Files that do not belong
together, as halfway through a renewal, are logged, and the old ones stay in use.
"""

import asyncio
import logging
import os
import ssl
from pathlib import Path

from huai_program.configuration import ConfigError
from huai_server.config.tables import Tls
from huai_server.http.asgi.threads import in_thread
from huai_server.state.file_stamp import FileStamp, file_stamp

_LOOK_SECONDS = 2.0
_OTHERS = 0o007
_log = logging.getLogger(__name__)


class TlsContext:
    """The TLS context for the next connection; raises `ConfigError` for unusable files."""

    def __init__(self, files: Tls) -> None:
        self._files = files
        self._stamps = _stamps(files)
        self.context = _load_context(files)

    async def follow(self) -> None:
        """Load the files again whenever they change, until cancelled; an error is logged."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            stamps = _stamps(self._files)
            if stamps != self._stamps:
                self._stamps = stamps
                try:
                    self.context = await in_thread(lambda: _load_context(self._files))
                except ConfigError as error:
                    _log.error("the old certificate stays in use: %s", error.message)
                else:
                    _log.info("%s: renewed certificate loaded", self._files.certificate)


def _stamps(files: Tls) -> list[FileStamp]:
    paths = (files.certificate, files.key, files.client_ca)
    return [file_stamp(Path(path)) for path in paths if path]


def _load_context(files: Tls) -> ssl.SSLContext:
    """Load certificate, key and client CA.

    Raises `ConfigError` if one cannot be used, or every user can read or change the key.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    place = files.key
    try:
        if os.stat(files.key).st_mode & _OTHERS:
            raise ConfigError(
                f"{files.key}: every user can read or change this key",
                hint=f"chmod o= {files.key}, and replace the key if another user may have read it",
            )
        # OpenSSL would ask for the passphrase of a key at the terminal.
        place = files.certificate
        context.load_cert_chain(files.certificate, files.key, password=lambda: "")
        if files.client_ca:
            place = files.client_ca
            context.load_verify_locations(files.client_ca)
            context.verify_mode = ssl.CERT_OPTIONAL
    except ssl.SSLError as error:
        raise ConfigError(
            f"{place}: {error.reason or 'it cannot be read'}",
            hint="certificate (with its chain) and key must be PEM and belong together; the key "
            "must have no passphrase",
        ) from error
    except OSError as error:
        raise ConfigError(
            f"{error.filename or place}: {error.strerror or os.strerror(error.errno or 0)}",
            hint="make it readable for the user who runs `serve`",
        ) from error
    return context
