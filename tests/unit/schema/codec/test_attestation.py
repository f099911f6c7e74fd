"""An attestation has one spelling, and anything else is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_schema.codec.attestation import BYTES_MAX, Attestation, SignedAttestation, is_served_url
from huai_schema.errors import FormatError
from tests.support.keys import key

SAID = Attestation("m", "0" * 32, 3, "a" * 40, 1_700_000_000, partial=False, urls=("http://h/m",))


def test_it_reads_back() -> None:
    for attestation in (
        SAID,
        SAID._replace(identity="", partial=True, urls=("http://h/", "rsync://h/m")),
    ):
        assert Attestation.decode(attestation.encode()) == attestation
        assert SignedAttestation.decode(attestation.signed(key(1).sign)) == (
            attestation,
            key(1).public,
        )


def test_what_is_spelt_otherwise_is_refused(subtests: pytest.Subtests) -> None:
    for old, new in [
        (b"serial 3", b"serial 03"),
        (b"serial 3", b"serial 9223372036854775808"),
        (b"time 1700000000", b"time 0"),
        (b"time 1700000000", b"time 999999999999"),
        (b"holds all", b"holds some"),
        (b"module m", b"module ../m"),
        (b"url http://h/m\n", b""),
        (b"url http://h/m\n", b"url http://h/m\nurl http://h/m\n"),
        (b"url http://h/m\n", b"".join(b"url http://h/%d\n" % each for each in range(9))),
        (b"url http://h/m", b"url file:///etc/passwd"),
        (b"url http://h/m", b"url http://u@h/m"),
        (b"url http://h/m", b"url http://h/m/../.."),
        (b"huai-attestation 1", b"huai-attestation 2"),
        (b"\n", b"\r\n"),
    ]:
        with subtests.test(old=old, new=new):
            with pytest.raises(FormatError):
                Attestation.decode(SAID.encode().replace(old, new))


def test_one_that_is_too_long_is_refused() -> None:
    long = SAID.signed(key(1).sign) + b"\n" * BYTES_MAX
    with pytest.raises(FormatError, match=f"more than {BYTES_MAX} bytes"):
        SignedAttestation.decode(long)


@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_bytes_are_refused(noise: bytes, place: int) -> None:
    good = SAID.signed(key(1).sign)
    for data in (noise, good[:place] + noise + good[place:]):
        if data.rstrip() == good.rstrip():
            continue
        with pytest.raises(FormatError):
            SignedAttestation.decode(data)


def test_urls(subtests: pytest.Subtests) -> None:
    for url, served in [
        ("https://h:8443/a/b/", True),
        ("rsync://h/m", True),
        ("rsync://[::1]:873/m/deep/", True),
        ("rsync://h", False),
        ("rsync://u@h/m", False),
        ("rsync://h/../m", False),
        ("rsync://h/-m", False),
        ("rsync://h:99999/m", False),
        ("ftp://h/m", False),
        ("https://h/" + "a" * 600, False),
    ]:
        with subtests.test(url=url, served=served):
            assert is_served_url(url) is served
