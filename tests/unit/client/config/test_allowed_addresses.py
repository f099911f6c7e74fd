"""The internal addresses that an upstream may lead to."""

import pytest

from huai_client.config import allowed_addresses as allowed_module
from huai_client.config.allowed_addresses import AllowedAddresses, check_networks
from huai_client.metadata.http import MetadataUrl, Request, UpstreamError, send
from huai_program.configuration import ConfigError

ADDRESSES = ("127.0.0.1", "10.1.2.3", "8.8.8.8")


def test_the_named_urls_say_how_far(subtests: pytest.Subtests) -> None:
    for configured, networks, allowed in [
        ((), (), ["8.8.8.8"]),
        (("https://8.8.4.4/",), (), ["8.8.8.8"]),
        (("https://192.168.1.1/",), (), ["10.1.2.3", "8.8.8.8"]),
        (("rsync://127.0.0.1/m",), (), [*ADDRESSES]),
        (("/srv/m",), (), [*ADDRESSES]),
        (("file:///srv/m.git",), (), [*ADDRESSES]),
        (("me@10.0.0.1:m.git",), (), ["10.1.2.3", "8.8.8.8"]),
        (("http://[::1]:port/",), (), ["8.8.8.8"]),
        (("https://8.8.4.4/",), ("10.1.0.0/16",), ["10.1.2.3", "8.8.8.8"]),
    ]:
        with subtests.test(configured=configured, networks=networks, allowed=allowed):
            allowed_addresses = AllowedAddresses(configured, networks)
            assert [each for each in ADDRESSES if not allowed_addresses.refusal(each)] == allowed
            assert [
                each for each in ADDRESSES if not allowed_addresses.refusal_of_host(each)
            ] == allowed


@pytest.mark.parametrize(
    ("addresses", "allowed"),
    [
        (["127.0.0.1", "8.8.4.4"], ["8.8.8.8"]),
        (["10.0.0.1", "2001:4860::8"], ["8.8.8.8"]),
        (["10.0.0.1", "127.0.0.1"], ["10.1.2.3", "8.8.8.8"]),
        (["10.0.0.1", "fd00::1"], ["10.1.2.3", "8.8.8.8"]),
        (["127.0.0.1", "::1"], [*ADDRESSES]),
        ([], ["8.8.8.8"]),
    ],
)
def test_a_name_counts_by_all_of_its_addresses(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str], allowed: list[str]
) -> None:
    """The owner of a name may add an address to it."""

    def resolved(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        assert host == "upstream.example"
        return [(0, 0, 0, "", (address, 0)) for address in addresses]

    allowed_module._addresses.cache_clear()
    monkeypatch.setattr("socket.getaddrinfo", resolved)
    allowed_addresses = AllowedAddresses(("https://upstream.example/",))
    assert [each for each in ADDRESSES if not allowed_addresses.refusal(each)] == allowed
    allowed_module._addresses.cache_clear()


def test_what_is_no_network() -> None:
    with pytest.raises(ConfigError, match="allow_networks: '10"):
        check_networks(["10.0.0.1/8"])


def test_metadata_are_not_redirected_inside() -> None:
    """Refuse the first request after a redirect, and those that follow."""
    addresses = MetadataUrl("http://192.168.7.7/m.git").redirected("http://127.0.0.1:1/m.git")
    with (
        pytest.raises(UpstreamError, match="a redirect leads into the local network: 127"),
        send(addresses, Request("objects")),
    ):
        pass
