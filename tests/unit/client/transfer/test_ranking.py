"""The choice of mirrors, and their order."""

from huai_client.state.hosts import Hosts
from huai_client.transfer.sources import fastest, note_speed, to_sample
from huai_client.transfer.urls import ContentUrl

URLS = [ContentUrl.parse(f"https://{name}.example/m") for name in "abcdefgh"]
MIB = 1 << 20


def measured_hosts(*rates: int) -> Hosts:
    """Return hosts with these speeds in MiB/s; 0 for one that was never used."""
    hosts = Hosts()
    for url, rate in zip(URLS, rates, strict=False):
        if rate:
            note_speed(url, hosts, rate * MIB, 1.0)
    return hosts


def names(urls: list[ContentUrl]) -> str:
    return "".join(url.host[0] for url in urls)


def test_a_few_in_the_upstreams_order_if_nothing_is_known() -> None:
    assert names(fastest(URLS, Hosts())) == "abcdef"


def test_the_fastest_and_one_that_is_new() -> None:
    assert names(fastest(URLS, measured_hosts(1, 0, 5, 3, 0, 9))) == "fcdbae"
    assert names(fastest(URLS[:3], measured_hosts(1, 2, 3))) == "cba"


def test_one_that_answers_late_is_slow_too() -> None:
    hosts = measured_hosts(8)
    note_speed(URLS[1], hosts, 16 * MIB, 1.0, 5.0)
    assert names(fastest(URLS[:2], hosts)) == "ab"


def test_only_what_is_not_known_is_sampled() -> None:
    rsync = ContentUrl.parse("rsync://r.example/m")
    assert names(to_sample([rsync, *URLS], measured_hosts(1))) == "bcd"
    assert to_sample(URLS[:1], Hosts()) == []
    assert to_sample(URLS[:3], measured_hosts(1, 1, 1)) == []


def test_nothing_is_noted_of_our_own() -> None:
    hosts = Hosts()
    note_speed(URLS[0]._replace(own=True), hosts, 8 * MIB, 1.0, 0.5)
    assert hosts.speed.of_service(URLS[0].service) is None
