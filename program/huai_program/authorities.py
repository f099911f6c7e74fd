"""Which authorities a transfer of libcurl believes: those of the system, or of the environment."""

import os

import pycurl


def trust_authorities(curl: pycurl.Curl, own: str = "") -> None:
    """Let `curl` believe the authorities in the file `own`, or else those that OpenSSL does here.

    pycurl's wheel looks where the machine had them that built it.
    """
    file, folder = (own, "") if own else _authorities()
    for option, path in ((pycurl.CAINFO, file), (pycurl.CAPATH, folder)):
        if path:
            curl.setopt(option, path)
        else:
            curl.unsetopt(option)


def _authorities() -> tuple[str, str]:
    """A file and a folder; empty: there is none.

    What `ssl.get_default_verify_paths` does, without the 15 ms that loading `ssl` takes.
    """
    import _ssl  # http:// has no need of it

    file_variable, file, folder_variable, folder = _ssl.get_default_verify_paths()
    file, folder = os.environ.get(file_variable, file), os.environ.get(folder_variable, folder)
    return file if os.path.isfile(file) else "", folder if os.path.isdir(folder) else ""
