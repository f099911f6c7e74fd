"""The signed statement of a downstream about its tree (FORMAT.md, "Attestation").

Pure.  Finds the key that signed it, and does not decide whether to trust that key.  Any bytes give
a value or a `FormatError`, and a value has one spelling.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple, Self

from huai_native._native import verify_signature
from huai_schema.codec.commits import COMMIT_TIME_MAX
from huai_schema.codec.module_name import check_module
from huai_schema.codec.web_folder import HOST, is_web_folder
from huai_schema.errors import FormatError

FILE_NAME: Final = "huai-attestation"
"""A name at the top of the tree, which no commit contains."""
BYTES_MAX: Final = 8192
URL_BYTES_MAX: Final = 512
NAMESPACE: Final = "huai-attestation"
"""The namespace of these signatures alone: no other one of the key is an attestation."""
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
"""The beginning of every signed attestation; other files may begin in the same way."""
_DAEMON = re.compile(rf"rsync://{HOST}(?::([0-9]{{1,5}}))?/([A-Za-z0-9._~+@,=/-]+)")
_PORT_MOST = 65_535
_PLACE = "attestation"


class Attestation(NamedTuple):
    """The statement of one downstream about one module."""

    module: str
    """The upstream's name for it."""
    identity: str
    """The identity of the upstream's module, or empty."""
    serial: int
    commit: str
    """The hex id of the commit whose tree is there."""
    time: int
    """Seconds since the epoch, when the tree was complete and verified."""
    partial: bool
    """True if a part of the commit is left out, or may be."""
    urls: tuple[str, ...]
    """The URLs that serve the tree, best first; `is_served_url` is true for each."""

    def encode(self) -> bytes:
        """Return the text to sign."""
        identity = f"identity {self.identity}\n" if self.identity else ""
        urls = "".join(f"url {url}\n" for url in self.urls)
        return (
            f"{_HEAD}module {self.module}\n{identity}serial {self.serial}\ncommit {self.commit}\n"
            f"time {self.time}\nholds {'part' if self.partial else 'all'}\n{urls}"
        ).encode()

    def signed(self, sign: Callable[[str, bytes], str]) -> bytes:
        """Return the text and its signature, which `sign` returns for a namespace and bytes."""
        text = self.encode()
        return text + sign(NAMESPACE, text).encode()

    @classmethod
    def decode(cls, text: bytes) -> Self:
        """Parse the text that was signed; raises `FormatError` if it is malformed.

        The text includes no signature (`SignedAttestation.decode`).
        """
        match = _TEXT.fullmatch(text.decode("ascii", "replace"))
        if match is None:
            raise FormatError("is not the lines of an attestation in their order", _PLACE)
        urls = tuple(line.removeprefix("url ") for line in match[7].splitlines())
        for url in urls:
            if not is_served_url(url):
                raise FormatError("a URL is not a web folder or rsync URL", _PLACE)
        if len(set(urls)) != len(urls):
            raise FormatError("a URL is repeated", _PLACE)
        serial, time = int(match[3]), int(match[5])
        if serial >= 1 << 63 or time > COMMIT_TIME_MAX:
            raise FormatError("a number is out of range", _PLACE)
        return cls(
            check_module(match[1]), match[2] or "", serial, match[4], time, match[6] == "part", urls
        )


class SignedAttestation(NamedTuple):
    """An attestation with a valid signature."""

    attestation: Attestation
    key: str
    """The public key that signed it, trusted or not."""

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Parse a file and verify its signature; trusts any key.

        Raises `FormatError` if it is too long, or if text or signature are not valid.
        """
        if len(data) > BYTES_MAX:
            raise FormatError(f"more than {BYTES_MAX} bytes", _PLACE)
        text, begin, signature = data.partition(_ARMOR)
        attestation = Attestation.decode(text)
        try:
            return cls(attestation, verify_signature(NAMESPACE, text, begin + signature))
        except FormatError as error:
            raise error.within(_PLACE) from None


def is_served_url(text: str) -> bool:
    """True if `text` is the URL of a web folder, or of a folder in an rsync daemon's module.

    False for more than `URL_BYTES_MAX` characters, and if a path has `.` or `..`.
    """
    if len(text) > URL_BYTES_MAX:
        return False
    match = _DAEMON.fullmatch(text)
    if match is None:
        return is_web_folder(text)
    parts = match[2].rstrip("/").split("/")
    names = all(part not in ("", ".", "..") for part in parts)
    return names and not parts[0].startswith("-") and int(match[1] or 0) <= _PORT_MOST
