"""Versions of keys: each signed by the keys of the one before, and by its own."""

import pytest

from huai_schema.codec.keys import KEYS_BYTES, KEYS_MAX, NAMESPACE, KeyChain, Keys, begin_chain
from huai_schema.errors import FormatError
from tests.support.keys import key


def signed(version: int, keys: tuple[int, ...], by: tuple[int, ...], threshold: int = 1) -> bytes:
    """Encode a version without the program's checks."""
    text = Keys(version, tuple(key(each).public for each in keys), threshold).encode()
    return text + b"".join(key(each).sign(NAMESPACE, text).encode() for each in by)


FIRST = signed(1, (1,), (1,))
TWO = signed(1, (1, 2, 3), (1, 2), 2)
"""A version in which two of three keys must sign."""


def test_a_right_chain_comes_back(subtests: pytest.Subtests) -> None:
    for data in [
        FIRST,
        signed(7, (1, 2), (2,)),
        FIRST + signed(2, (2,), (1, 2)),
        FIRST + signed(2, (1, 2), (1,)),
        FIRST + signed(2, (1, 2), (2, 1)) + signed(3, (2,), (2,)),
        FIRST + signed(2, (2,), (1, 2)) + signed(3, (3,), (2, 3)),
        TWO,
        TWO + signed(2, (1, 2, 4), (1, 2, 4), 2) + signed(3, (4, 5), (2, 4, 5), 2),
        FIRST + signed(2, (1, 2, 3), (1, 2, 3), 3),
        TWO + signed(2, (4,), (1, 3, 4)),
    ]:
        with subtests.test(data=data):
            assert KeyChain.decode(data).encode() == data


def test_a_wrong_chain_is_refused(subtests: pytest.Subtests) -> None:
    for data, reason in [
        (b"", "empty"),
        (FIRST + b"x" * KEYS_BYTES, "too long"),
        (FIRST + b"\n", "not a version"),
        (FIRST[:-10], "not a version"),
        (FIRST.replace(b"threshold\t1", b"threshold\t0"), "not a version"),
        (FIRST.replace(b"threshold\t1", b"threshold\t2"), "a threshold of 2 of 1 keys"),
        (signed(1, (1, 2), (1,), 2), "not signed by 2 keys of its own"),
        (signed(1, (1, 2), (1, 1), 2), "not signed by 2 keys of its own"),
        (signed(1, (1, 2), (1, 3), 2), "not signed by 2 keys of its own"),
        (TWO + signed(2, (1, 4, 5), (1, 4, 5), 2), "not signed by 2 keys of the previous version"),
        (TWO + signed(2, (4,), (1, 4)), "not signed by 2 keys of the previous version"),
        (FIRST.replace(b"version\t1", b"version\t0"), "not a version"),
        (FIRST.replace(b"version\t1", b"version\t2"), "not of these bytes"),
        (signed(1, (1,), (2,)), "not signed by a key of its own"),
        (FIRST + signed(2, (2,), (2,)), "not signed by a key of the previous version"),
        (FIRST + signed(2, (2,), (1,)), "not signed by a key of its own"),
        (FIRST + signed(3, (2,), (1, 2)), "does not follow the previous version"),
        (FIRST + signed(1, (2,), (1, 2)), "does not follow the previous version"),
        (signed(1, (1, 1), (1,)), "each once"),
        (signed(1, tuple(range(1, KEYS_MAX + 2)), (1,)), f"at most {KEYS_MAX} keys"),
        (signed(1, (1,), (1,) * (2 * KEYS_MAX + 1)), "too many signatures"),
        (FIRST.replace(b"ssh-ed25519 ", b"ssh-ed25519  "), "not of these bytes|OpenSSH"),
        (FIRST.replace(b"\n-----BEGIN", b" comment\n-----BEGIN", 1), "canonical spelling"),
    ]:
        with subtests.test(data=data, reason=reason):
            with pytest.raises(FormatError, match=reason):
                KeyChain.decode(data)


def test_a_signature_of_a_commit_is_none_of_keys() -> None:
    text = Keys(1, (key(1).public,)).encode()
    with pytest.raises(FormatError, match="not of these bytes"):
        KeyChain.decode(text + key(1).sign("git", text).encode())


def test_the_oldest_go_when_there_are_too_many() -> None:
    keys = Keys(1, (key(0).public,))
    chain = begin_chain(keys, key(0).sign(NAMESPACE, keys.encode()).encode())
    for number in range(1, 120):
        keys = Keys(number + 1, (key(number).public,))
        by = (key(number - 1), key(number))
        chain = chain.extend(keys, [each.sign(NAMESPACE, keys.encode()).encode() for each in by])
    assert chain.newest.version == 120
    assert 1 < chain.versions[0].keys.version < 60
    assert KeyChain.decode(chain.encode()) == chain
