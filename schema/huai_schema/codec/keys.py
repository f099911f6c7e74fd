"""The `keys` of a commit: the trusted keys, version by version (FORMAT.md, "Keys").

Pure.  Rule: a `KeyChain` is verified.  Each version is signed by its own threshold of its keys, and
by the former version's threshold of the former keys.
"""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from huai_native._native import parse_public_key, verify_signature
from huai_schema.codec.descriptor import ROOT_BYTES
from huai_schema.errors import FormatError
from huai_schema.git.objects import ObjectReader, decode_tree

ITEM = b"keys"
KEYS_BYTES = 65_536
KEYS_MAX = 16
NAMESPACE = "huai-keys"
"""The namespace of these signatures: the signature of a commit does not count here."""
_PLACE = "keys"
_VERSION = re.compile(
    rb"(version\t([1-9][0-9]{0,8})\nthreshold\t([1-9][0-9]?)\n((?:key\t[ -~]+\n)+))"
    rb"((?:-----BEGIN SSH SIGNATURE-----\n[A-Za-z0-9+/=\n]+-----END SSH SIGNATURE-----\n)+)"
)
_SIGNATURE_END = b"-----END SSH SIGNATURE-----\n"


class Keys(NamedTuple):
    """A version of the keys that may sign, and the number of them that must."""

    version: int
    keys: tuple[str, ...]
    """Public keys as `parse_public_key` returns them."""
    threshold: int = 1

    def encode(self) -> bytes:
        """Return the text to sign."""
        keys = "".join(f"key\t{key}\n" for key in self.keys)
        return f"version\t{self.version}\nthreshold\t{self.threshold}\n{keys}".encode()

    def agrees(self, signers: Collection[str]) -> bool:
        """True if at least `threshold` of these keys are in `signers`, verified by the caller."""
        return len(set(signers).intersection(self.keys)) >= self.threshold


class KeyVersion(NamedTuple):
    """A version of keys with its signatures."""

    keys: Keys
    signatures: tuple[bytes, ...]
    signers: frozenset[str]
    """The keys that signed it; each signature is verified."""


class KeyChain(NamedTuple):
    """The versions that are kept, in order; the last one counts."""

    versions: tuple[KeyVersion, ...]

    @property
    def newest(self) -> Keys:
        """The newest version of the keys, which are the trusted ones."""
        return self.versions[-1].keys

    def encode(self) -> bytes:
        """Return the blob."""
        return b"".join(each.keys.encode() + b"".join(each.signatures) for each in self.versions)

    def follows(self, trusted: Keys, floor: int = 1) -> bool:
        """True if the newest version is `trusted`, or follows from it step by step.

        Each step needs the signatures that the previous version requires, and at least `floor`.
        """
        listed = [version.keys for version in self.versions]
        if trusted in listed:
            left = self.versions[listed.index(trusted) + 1 :]
        elif listed[0].version == trusted.version + 1:
            left = self.versions
        else:
            return False
        for version in left:
            required = max(trusted.threshold, floor)
            if not trusted._replace(threshold=required).agrees(version.signers):
                return False
            trusted = version.keys
        return True

    def extend(self, keys: Keys, signatures: Sequence[bytes]) -> "KeyChain":
        """Return the chain with one more version; drops the oldest ones if it gets too long.

        Raises `FormatError` if `keys` are not valid or do not follow the last version, a signature
        is wrong, or fewer of the former keys, or of its own, signed it than their thresholds
        require.
        """
        versions = (*self.versions, _verify(keys, tuple(signatures)))
        while len(KeyChain(versions).encode()) > KEYS_BYTES:
            versions = versions[1:]
        _check_chain(versions)
        return KeyChain(versions)

    @classmethod
    def decode(cls, data: bytes) -> "KeyChain":
        """Parse the blob; `FormatError` if it is malformed, or a signature is wrong or missing.

        Each version must be signed as it and the previous one require; `follows` decides on trust.
        """
        if not 0 < len(data) <= KEYS_BYTES:
            raise FormatError("is empty, or too long", _PLACE)
        versions: list[KeyVersion] = []
        place = 0
        while place < len(data):
            match = _VERSION.match(data, place)
            if match is None:
                raise FormatError("is not a version and its signatures", _PLACE)
            lines = match[4].decode("ascii").splitlines()
            listed = tuple(line.removeprefix("key\t") for line in lines)
            keys = Keys(int(match[2]), listed, int(match[3]))
            parts = match[5].split(_SIGNATURE_END)[:-1]
            versions.append(_verify(keys, tuple(part + _SIGNATURE_END for part in parts)))
            place = match.end()
        _check_chain(versions)
        return cls(tuple(versions))


def begin_chain(keys: Keys, *signatures: bytes) -> KeyChain:
    """Return a chain of one version; `FormatError` unless `threshold` of its keys signed it."""
    return KeyChain(()).extend(keys, signatures)


def read_keys(root: bytes, reader: ObjectReader) -> KeyChain | None:
    """Return the chain of keys in a commit's git tree (the id `root`), None without any.

    Raises `FormatError` if they are malformed, or a signature is wrong or missing.
    """
    data = reader.read(root, "tree")
    if len(data) > ROOT_BYTES:
        raise FormatError(f"a commit tree of more than {ROOT_BYTES} bytes", "commit")
    for item in decode_tree(data, "commit"):
        if item.name == ITEM and not item.is_tree:
            return KeyChain.decode(reader.read(item.oid, "blob"))
    return None


def _verify(keys: Keys, signatures: tuple[bytes, ...]) -> KeyVersion:
    """Verify each signature of a version; return the version with the keys that signed it.

    Does not require enough of them (`_check_chain`).  Raises `FormatError` if a key, the threshold
    or a signature is not valid.
    """
    if len(keys.keys) > KEYS_MAX or len(set(keys.keys)) != len(keys.keys):
        raise FormatError(f"must have at most {KEYS_MAX} keys, each once", _PLACE)
    if not 1 <= keys.threshold <= len(keys.keys):
        raise FormatError(f"a threshold of {keys.threshold} of {len(keys.keys)} keys", _PLACE)
    if len(signatures) > 2 * KEYS_MAX:
        raise FormatError("too many signatures", _PLACE)
    try:
        if any(parse_public_key(key) != key for key in keys.keys):
            raise FormatError("a key is not in canonical spelling")
        text = keys.encode()
        signers = frozenset(verify_signature(NAMESPACE, text, each) for each in signatures)
    except FormatError as error:
        raise error.within(f"{_PLACE}: version {keys.version}") from None
    return KeyVersion(keys, signatures, signers)


def _check_chain(versions: Sequence[KeyVersion]) -> None:
    """Raise `FormatError` unless enough of its own and the previous keys signed each version.

    Raises it also if the numbers of the versions are not consecutive.
    """
    former: Keys | None = None
    for version in versions:
        place = f"{_PLACE}: version {version.keys.version}"
        if not version.keys.agrees(version.signers):
            raise FormatError(f"is not signed by {_how_many(version.keys)} of its own", place)
        if former is not None:
            if version.keys.version != former.version + 1:
                raise FormatError("does not follow the previous version", place)
            if not former.agrees(version.signers):
                signers = f"{_how_many(former)} of the previous version"
                raise FormatError(f"is not signed by {signers}", place)
        former = version.keys


def _how_many(keys: Keys) -> str:
    return "a key" if keys.threshold == 1 else f"{keys.threshold} keys"
