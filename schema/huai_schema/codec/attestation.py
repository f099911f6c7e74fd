"""What a downstream signs after a sync: which serial it holds, where (FORMAT.md, "Attestation").

Pure.  Says who signed it, never whether that is somebody to believe.  Any bytes give a value or a
`FormatError`, and a value has one spelling.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple, Self

from huai_native._native import verify_signature
from huai_schema.codec.commits import COMMIT_TIME_MAX
from huai_schema.codec.descriptor import check_module
from huai_schema.codec.web_folder import HOST, is_web_folder
from huai_schema.errors import FormatError

FILE_NAME: Final = "huai-attestation"
"""At the top of the tree; no commit has it."""
BYTES_MAX: Final = 8192
URL_BYTES_MAX: Final = 512
NAMESPACE: Final = "huai-attestation"
"""No other signature of the same key is an attestation."""
_HEAD = "huai-attestation 1\n"
_TEXT = re.compile(
    r"huai-attestation 1\n"
    r"module ([^ \n]{1,255})\n"
    r"(?:identity ([0-9a-f]{32})\n)?"
    r"serial ([1-9][0-9]{0,18})\n"
    r"commit ([0-9a-f]{40})\n"
    r"time ([1-9][0-9]{0,11})\n"
    r"holds (all|part)\n"
    r"((?:url [!-~]{1,512}\n){1,8})"
)
_ARMOR = b"-----BEGIN SSH SIGNATURE-----\n"
SIGNED_PATTERN: Final = f"^{_TEXT.pattern}{_ARMOR.decode()}"
"""How each that is signed begins; not all that begins so is one."""
_DAEMON = re.compile(rf"rsync://{HOST}(?::([0-9]{{1,5}}))?/([A-Za-z0-9._~+@,=/-]+)")
_PORT_MOST = 65_535
_PLACE = "attestation"


class Attestation(NamedTuple):
    """What one downstream says of one module."""

    module: str
    """As the upstream calls it."""
    identity: str
    """Of the upstream's module; empty: it has none."""
    serial: int
    commit: str
    """Hex id of the commit whose tree is held."""
    time: int
    """When it was there, all of it verified; seconds since the epoch."""
    partial: bool
    """Whether something of it is left out, or may be."""
    urls: tuple[str, ...]
    """Where the tree is served, best first; each is `is_served_url`."""

    def encode(self) -> bytes:
        """What is signed."""
        identity = f"identity {self.identity}\n" if self.identity else ""
        urls = "".join(f"url {url}\n" for url in self.urls)
        return (
            f"{_HEAD}module {self.module}\n{identity}serial {self.serial}\ncommit {self.commit}\n"
            f"time {self.time}\nholds {'part' if self.partial else 'all'}\n{urls}"
        ).encode()

    def signed(self, sign: Callable[[str, bytes], str]) -> bytes:
        """With the signature that `sign` makes of (namespace, bytes)."""
        text = self.encode()
        return text + sign(NAMESPACE, text).encode()

    @classmethod
    def decode(cls, text: bytes) -> Self:
        """Read what is signed; `FormatError`."""
        found = _TEXT.fullmatch(text.decode("ascii", "replace"))
        if found is None:
            raise FormatError("not the lines of an attestation, in their order", _PLACE)
        urls = tuple(line.removeprefix("url ") for line in found[7].splitlines())
        for url in urls:
            if not is_served_url(url):
                raise FormatError("a URL that nobody can mirror from", _PLACE)
        if len(set(urls)) != len(urls):
            raise FormatError("a URL that stands twice", _PLACE)
        serial, time = int(found[3]), int(found[5])
        if serial >= 1 << 63 or time > COMMIT_TIME_MAX:
            raise FormatError("a number out of range", _PLACE)
        return cls(
            check_module(found[1]), found[2] or "", serial, found[4], time, found[6] == "part", urls
        )


class SignedAttestation(NamedTuple):
    """An attestation whose signature is right."""

    said: Attestation
    key: str
    """The public key of whoever signed it."""

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a whole file, and prove its signature; `FormatError`."""
        if len(data) > BYTES_MAX:
            raise FormatError(f"more than {BYTES_MAX} bytes", _PLACE)
        text, begin, signature = data.partition(_ARMOR)
        said = Attestation.decode(text)
        try:
            return cls(said, verify_signature(NAMESPACE, text, begin + signature))
        except FormatError as error:
            raise error.within(_PLACE) from None


def is_served_url(text: str) -> bool:
    """Whether `text` is the folder of a web server, or one below a module of an rsync daemon."""
    if len(text) > URL_BYTES_MAX:
        return False
    found = _DAEMON.fullmatch(text)
    if found is None:
        return is_web_folder(text)
    parts = found[2].rstrip("/").split("/")
    names = all(part not in ("", ".", "..") for part in parts)
    return names and not parts[0].startswith("-") and int(found[1] or 0) <= _PORT_MOST
