"""Sets the certificate authorities of libcurl: those of the system, or of the environment."""

import os
import re

import pycurl


def trust_authorities(curl: pycurl.Curl, own: str = "") -> None:
    """Let `curl` trust the authorities in the file `own`, or else the environment's or OpenSSL's.

    pycurl's wheel has the path of the machine that built it.
    """
    file, folder = (own, "") if own else _authorities()
    for option, path in ((pycurl.CAINFO, file), (pycurl.CAPATH, folder)):
        if path:
            curl.setopt(option, path)
        else:
            curl.unsetopt(option)


def _authorities() -> tuple[str, str]:
    """Return file and folder of the environment or of OpenSSL; an empty text if missing.

    Does the work of `ssl.get_default_verify_paths` without the 15 ms of loading `ssl`.
    """
    import _ssl  # http:// has no need of it

    file_variable, file, folder_variable, folder = _ssl.get_default_verify_paths()
    folder = os.environ.get(folder_variable, folder)
    folder = folder if os.path.isdir(folder) else ""
    if file_variable not in os.environ and folder and _is_bundle(file, folder):
        return "", folder
    file = os.environ.get(file_variable, file)
    return file if os.path.isfile(file) else "", folder


def _is_bundle(file: str, folder: str) -> bool:
    """True if `file` is Debian's bundle of the certificates in `folder`, which has their hashes.

    OpenSSL parses a whole file (11 ms for 146 authorities), and of a folder what it needs.  False
    if the file has more certificates: some add one there.
    """
    path = os.path.realpath(file)
    if path != os.path.join(os.path.realpath(folder), "ca-certificates.crt"):
        return False
    try:
        hashed = [name for name in os.listdir(folder) if re.fullmatch(r"[0-9a-f]{8}\.[0-9]+", name)]
        with open(file, "rb") as bundle:
            return bundle.read().count(b"-BEGIN CERTIFICATE-") <= len(hashed)
    except OSError:
        return False
