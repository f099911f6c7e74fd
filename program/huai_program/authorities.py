"""Sets the certificate authorities of libcurl: those of the system, or of the environment."""

import os

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
    file, folder = os.environ.get(file_variable, file), os.environ.get(folder_variable, folder)
    return file if os.path.isfile(file) else "", folder if os.path.isdir(folder) else ""
