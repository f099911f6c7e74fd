"""A self-signed certificate."""

import subprocess
from pathlib import Path

_COMMAND = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
    "-subj /CN=localhost -addext"
)


def make_certificate(folder: Path, names: str = "IP:127.0.0.1,DNS:localhost") -> tuple[Path, Path]:
    """The files of the certificate and its key, in `folder`."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = [
        *_COMMAND.split(),
        f"subjectAltName={names}",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key
