import pytest

from huai_server.http.asgi.connections import address_of

COUNTED = address_of(["127.0.0.1", "10.0.0.0/8", "2001:db8:1::/48"])


@pytest.mark.parametrize("host", ["127.0.0.1", "::ffff:127.0.0.1", "10.9.8.7", "2001:db8:1::7"])
def test_a_proxy_stands_for_many(host: str) -> None:
    assert COUNTED(host) == ""


def test_a_network_of_version_6_counts_as_one() -> None:
    assert COUNTED("2001:db8::1") == COUNTED("2001:db8::ffff:1") != COUNTED("2001:db8:0:1::1")
    assert COUNTED("fe80::1%eth0") == COUNTED("fe80::2")
    assert COUNTED("192.0.2.1") != COUNTED("192.0.2.2")


@pytest.mark.parametrize("host", ["", "unknown", "x" * 5000, "1.2.3.4.5", "\xff"])
def test_anything_may_stand_in_a_header(host: str) -> None:
    assert len(COUNTED(host)) <= 64


@pytest.mark.parametrize("proxy", ["", "proxy.example", "10.0.0.0/33"])
def test_what_is_no_address_is_refused(proxy: str) -> None:
    with pytest.raises(ValueError, match=r"does not appear|not.*IP"):
        address_of([proxy])
