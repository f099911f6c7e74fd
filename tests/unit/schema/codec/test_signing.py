"""Signed commits are split and joined; any other form than git's is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_native._native import verify_signature
from huai_schema.codec.commits import COMMIT_TIME_MAX
from huai_schema.codec.signing import (
    COSIGNED,
    NAMESPACE,
    Promise,
    SignedCommit,
    cosign,
    join_commit,
    signers_of,
    split_commit,
    split_cosigned,
)
from huai_schema.errors import FormatError
from tests.support.keys import key

HEAD = b"tree %s\nparent %s\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n" % (
    b"1" * 40,
    b"2" * 40,
)
MESSAGE = b"a message\n\nwith gpgsig in it\ngpgsig none\n"
PAYLOAD = HEAD + b"\n" + MESSAGE
SIGNATURE = key(1).sign(NAMESPACE, PAYLOAD).encode()
COMMIT = join_commit(PAYLOAD, SIGNATURE)
LINES = COMMIT.removeprefix(HEAD).removesuffix(b"\n" + MESSAGE)


def test_apart_and_together() -> None:
    signed = split_commit(COMMIT)
    assert signed == (PAYLOAD, SIGNATURE)
    assert verify_signature(NAMESPACE, *signed) == key(1).public
    assert split_commit(PAYLOAD) is None


def test_another_form_is_refused(subtests: pytest.Subtests) -> None:
    for data in [
        HEAD + LINES + LINES + b"\n" + MESSAGE,
        HEAD + LINES + b"encoding latin1\n\n" + MESSAGE,
        HEAD + b"encoding latin1\n" + LINES + b"\n" + MESSAGE,
        HEAD + b"gpgsig-sha256" + LINES.removeprefix(b"gpgsig") + b"\n" + MESSAGE,
        HEAD + LINES + b"gpgsig-sha256" + LINES.removeprefix(b"gpgsig") + b"\n" + MESSAGE,
        LINES.join(HEAD.partition(b"author"))[: len(HEAD)] + LINES + b"\n" + MESSAGE,
        HEAD + b"gpgsig \n" + b"\n" + MESSAGE,
        HEAD + b"gpgsig",
        COMMIT + b"x" * 131_072,
    ]:
        with subtests.test(data=data):
            with pytest.raises(FormatError):
                split_commit(data)


PROMISE = Promise("0" * 32, 1_700_000_000, b"h" * 32)


def test_a_promise_comes_back() -> None:
    assert Promise.decode("m 1: +0\n\nHuai-Moved: 0\n" + PROMISE.encode() + "More: 1\n") == PROMISE


def test_a_wrong_promise_is_refused(subtests: pytest.Subtests) -> None:
    for message in [
        "",
        PROMISE.encode() * 2,
        PROMISE.encode() + "Huai-Valid-Until: 1\n",
        "\n".join(reversed(PROMISE.encode().splitlines())) + "\n",
        PROMISE._replace(valid_until=0).encode(),
        PROMISE._replace(valid_until=COMMIT_TIME_MAX + 1).encode(),
        PROMISE._replace(identity="").encode(),
        PROMISE.encode().replace("blake3", "sha1"),
        PROMISE.encode().replace("Huai-Valid", " Huai-Valid"),
    ]:
        with subtests.test(message=message):
            with pytest.raises(FormatError):
                Promise.decode(message)


COSIGNATURES = [key(number).sign(COSIGNED, PAYLOAD).encode() for number in (2, 3)]
COSIGNED_PAYLOAD = cosign(PAYLOAD, COSIGNATURES)


def test_co_signatures_apart_and_together() -> None:
    assert split_cosigned(PAYLOAD) == (PAYLOAD, [])
    assert split_cosigned(COSIGNED_PAYLOAD) == (PAYLOAD, COSIGNATURES)
    signed = SignedCommit(COSIGNED_PAYLOAD, key(1).sign(NAMESPACE, COSIGNED_PAYLOAD).encode())
    assert signers_of(signed) == tuple(key(number).public for number in (1, 2, 3))
    assert split_commit(join_commit(*signed)) == signed


def test_a_co_signature_is_none_of_git_and_the_other_way_round() -> None:
    for first, second in ((NAMESPACE, NAMESPACE), (COSIGNED, COSIGNED)):
        payload = cosign(PAYLOAD, [key(2).sign(second, PAYLOAD).encode()])
        with pytest.raises(FormatError):
            signers_of(SignedCommit(payload, key(1).sign(first, payload).encode()))


@given(
    st.lists(st.sampled_from([b"Huai-Cosignature: ", b"AA", b"=", b"\n", b"x", b" ", b"\0"])),
)
def test_any_end_of_a_message_gives_co_signatures_or_an_error(parts: list[bytes]) -> None:
    data = PAYLOAD + b"".join(parts)
    try:
        own, signatures = split_cosigned(data)
    except FormatError:
        return
    assert cosign(own, signatures) == data
