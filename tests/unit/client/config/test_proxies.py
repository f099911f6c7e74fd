"""The proxies that the environment names."""

import os
from urllib.parse import urlsplit

import pytest

from huai_client.config.proxies import proxy_for, rsync_proxy


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in os.environ if each.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("variables", "url", "text"),
    [
        ({}, "http://host/", None),
        (
            {"http_proxy": "http://me:secret@p:3128/"},
            "http://host/",
            "http://p:3128/ of http_proxy",
        ),
        ({"HTTPS_PROXY": "p:3128"}, "https://host/", "http://p:3128 of HTTPS_PROXY"),
        ({"http_proxy": "p:1", "no_proxy": "host"}, "http://host/", None),
        ({"all_proxy": "socks5://p:1"}, "http://host/", "socks5://p:1 of all_proxy"),
    ],
)
def test_who_names_it(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], url: str, text: str | None
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    proxy = proxy_for(urlsplit(url))
    assert (str(proxy).removeprefix("the proxy ") if proxy else None) == text


def test_one_of_rsync(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rsync_proxy() is None
    monkeypatch.setenv("RSYNC_PROXY", "me:secret@p:3128")
    proxy = rsync_proxy()
    assert proxy is not None
    assert str(proxy) == "the proxy http://p:3128 of RSYNC_PROXY"
    assert (proxy.address, proxy.login) == (("p", 3128), b"me:secret")
    monkeypatch.setenv("RSYNC_PROXY", "p:port")
    assert rsync_proxy() is None
