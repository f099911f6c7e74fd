"""The `keys` of a commit: whose signatures count, from version to version (FORMAT.md, "Keys").

Pure.  Rule: a chain in hand is proved: each version is signed by as many of its own keys as it asks
for, and by as many of the version before as that one asks for.
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
"""No signature of a commit is one of a version of keys."""
_PLACE = "keys"
_VERSION = re.compile(
    rb"(version\t([1-9][0-9]{0,8})\nthreshold\t([1-9][0-9]?)\n((?:key\t[ -~]+\n)+))"
    rb"((?:-----BEGIN SSH SIGNATURE-----\n[A-Za-z0-9+/=\n]+-----END SSH SIGNATURE-----\n)+)"
)
_SIGNATURE_END = b"-----END SSH SIGNATURE-----\n"


class Keys(NamedTuple):
    """One version: the keys that may sign, and how many of them have to."""

    version: int
    keys: tuple[str, ...]
    """Each as `parse_public_key` gives it."""
    threshold: int = 1

    def encode(self) -> bytes:
        """What is signed of it."""
        keys = "".join(f"key\t{key}\n" for key in self.keys)
        return f"version\t{self.version}\nthreshold\t{self.threshold}\n{keys}".encode()

    def agrees(self, signers: Collection[str]) -> bool:
        """Whether enough of these keys are among `signers`, whose signatures are proved."""
        return len(set(signers).intersection(self.keys)) >= self.threshold


class KeyVersion(NamedTuple):
    """Keys, with who says so."""

    keys: Keys
    signatures: tuple[bytes, ...]
    signers: frozenset[str]
    """The keys that signed it; each signature is proved."""


class KeyChain(NamedTuple):
    """All versions that are kept, one after the other; the last one counts."""

    versions: tuple[KeyVersion, ...]

    @property
    def newest(self) -> Keys:
        """Whose signatures count."""
        return self.versions[-1].keys

    def encode(self) -> bytes:
        """The blob."""
        return b"".join(each.keys.encode() + b"".join(each.signatures) for each in self.versions)

    def follows(self, known: Keys, floor: int = 1) -> bool:
        """Whether the newest version is `known`, or follows from it, step by step.

        Each step needs as many signatures as the version before it asks for, and at least `floor`.
        """
        listed = [each.keys for each in self.versions]
        if known in listed:
            left = self.versions[listed.index(known) + 1 :]
        elif listed[0].version == known.version + 1:
            left = self.versions
        else:
            return False
        for each in left:
            if not known._replace(threshold=max(known.threshold, floor)).agrees(each.signers):
                return False
            known = each.keys
        return True

    def extend(self, keys: Keys, signatures: Sequence[bytes]) -> "KeyChain":
        """The chain with one more version; the oldest go if it gets too long."""
        versions = (*self.versions, _proved(keys, tuple(signatures)))
        while len(KeyChain(versions).encode()) > KEYS_BYTES:
            versions = versions[1:]
        _check(versions)
        return KeyChain(versions)

    @classmethod
    def decode(cls, data: bytes) -> "KeyChain":
        """Read the blob, and prove it; `FormatError`."""
        if not 0 < len(data) <= KEYS_BYTES:
            raise FormatError("none, or too many", _PLACE)
        versions: list[KeyVersion] = []
        place = 0
        while place < len(data):
            found = _VERSION.match(data, place)
            if found is None:
                raise FormatError("not a version and its signatures", _PLACE)
            lines = found[4].decode("ascii").splitlines()
            listed = tuple(line.removeprefix("key\t") for line in lines)
            keys = Keys(int(found[2]), listed, int(found[3]))
            parts = found[5].split(_SIGNATURE_END)[:-1]
            versions.append(_proved(keys, tuple(part + _SIGNATURE_END for part in parts)))
            place = found.end()
        _check(versions)
        return cls(tuple(versions))


def begin_chain(keys: Keys, *signatures: bytes) -> KeyChain:
    """The first version, signed by its keys."""
    return KeyChain(()).extend(keys, signatures)


def read_keys(root: bytes, reader: ObjectReader) -> KeyChain | None:
    """The keys of a commit tree, if it has any."""
    data = reader.read(root, "tree")
    if len(data) > ROOT_BYTES:
        raise FormatError(f"a commit tree of more than {ROOT_BYTES} bytes", "commit")
    for item in decode_tree(data, "commit"):
        if item.name == ITEM and not item.is_tree:
            return KeyChain.decode(reader.read(item.oid, "blob"))
    return None


def _proved(keys: Keys, signatures: tuple[bytes, ...]) -> KeyVersion:
    if len(keys.keys) > KEYS_MAX or len(set(keys.keys)) != len(keys.keys):
        raise FormatError(f"more than {KEYS_MAX} keys, or one of them twice", _PLACE)
    if not 1 <= keys.threshold <= len(keys.keys):
        raise FormatError(f"a threshold of {keys.threshold} of {len(keys.keys)} keys", _PLACE)
    if len(signatures) > 2 * KEYS_MAX:
        raise FormatError("too many signatures", _PLACE)
    try:
        if any(parse_public_key(key) != key for key in keys.keys):
            raise FormatError("a key that is spelt in another way")
        text = keys.encode()
        signers = frozenset(verify_signature(NAMESPACE, text, each) for each in signatures)
    except FormatError as error:
        raise error.within(f"{_PLACE}: version {keys.version}") from None
    return KeyVersion(keys, signatures, signers)


def _check(versions: Sequence[KeyVersion]) -> None:
    """Each version says itself whose keys it has, and the one before agrees."""
    former: Keys | None = None
    for version in versions:
        place = f"{_PLACE}: version {version.keys.version}"
        if not version.keys.agrees(version.signers):
            raise FormatError(f"not signed by {_how_many(version.keys)} of its own", place)
        if former is not None:
            if version.keys.version != former.version + 1:
                raise FormatError("not the one after the version before", place)
            if not former.agrees(version.signers):
                raise FormatError(f"not signed by {_how_many(former)} of the version before", place)
        former = version.keys


def _how_many(keys: Keys) -> str:
    return "a key" if keys.threshold == 1 else f"{keys.threshold} keys"
