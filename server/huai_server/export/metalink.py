"""A metalink of one file (RFC 5854): its URLs, its size, and its digest.

Pure.  The content URLs of the commit come first, in their order, then its mirrors, then those
that attest what they hold.  A `hash` element must have a type of IANA's registry of hash names,
which has no BLAKE3, so the digest is in an element of huai's namespace, which other programs must
ignore.
"""

from collections.abc import Iterable
from urllib.parse import quote_from_bytes
from xml.sax.saxutils import escape, quoteattr

from huai_schema import __version__
from huai_schema.codec.descriptor import Descriptor
from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import basename

MEDIA_TYPE = "application/metalink4+xml"
_NAMESPACE = "urn:ietf:params:xml:ns:metalink"
_OWN_NAMESPACE = "urn:x-huai:metalink"
_SPACES = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}


class NoMetalinkError(HuaiError):
    """A file cannot have a metalink."""

    exit_code = ExitCode.FORMAT


def metalink(file: File, descriptor: Descriptor, more_urls: Iterable[str] = ()) -> str:
    """Return the document; `more_urls` are those of further mirrors.

    Raises `NoMetalinkError` if XML cannot hold the name of the file, or all URLs are missing.
    """
    urls = tuple(dict.fromkeys((*descriptor.content_urls, *descriptor.mirrors, *more_urls)))
    if not urls:
        raise NoMetalinkError("the commit names no content URLs")
    name = _attribute(basename(file.path))
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<metalink xmlns="{_NAMESPACE}">',
        f" <generator>huai/{escape(__version__)}</generator>",
        f" <file name={name}>",
        f"  <size>{file.size}</size>",
    ]
    if file.digest:
        lines.append(
            f'  <digest xmlns="{_OWN_NAMESPACE}" type="blake3">{file.digest.hex()}</digest>'
        )
    for priority, url in enumerate(urls, 1):
        address = escape(_address(url, file.path))
        lines.append(f'  <url priority="{priority}">{address}</url>')
    return "\n".join([*lines, " </file>", "</metalink>", ""])


def _attribute(name: bytes) -> str:
    """Return a name in quotes; raises `NoMetalinkError` for characters that XML cannot hold."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise NoMetalinkError("the name of the file is not UTF-8") from None
    if not all(char in _SPACES or " " <= char <= "\ufffd" or char > "\uffff" for char in text):
        raise NoMetalinkError("the name of the file holds a control character")
    return quoteattr(text, _SPACES)


def _address(url: str, path: bytes) -> str:
    """Return the URL of a file below a content URL, of a daemon or of a web server."""
    host, colons, module = url.partition("::")
    top = f"rsync://{host}/{module}" if colons and "/" not in host else url
    return f"{top.rstrip('/')}/{quote_from_bytes(path, safe='/')}"
