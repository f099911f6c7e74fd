"""Which way a question takes."""

import pytest

from huai_client.metadata.http_connection import Route, host_and_port


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


def test_without_a_proxy(subtests: pytest.Subtests) -> None:
    for url, host, target in [
        ("http://h", "h", "/"),
        ("http://h:80/a?b=c#d", "h", "/a?b=c"),
        ("https://h:443/a", "h", "/a"),
        ("https://me:secret@h:8443/a", "h:8443", "/a"),
        ("http://[::1]:8080/", "[::1]:8080", "/"),
        ("http://bücher.example/", "xn--bcher-kva.example", "/"),
    ]:
        with subtests.test(url=url, host=host, target=target):
            route = Route.of(url)
            assert (host_and_port(route.url), route.target, route.proxy) == (host, target, None)


@pytest.mark.parametrize("url", ["ftp://h/", "http://", "http:///x", "h/x", "http://h:99999/"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        host_and_port(Route.of(url).url)


def test_a_proxy_for_http_is_asked_for_the_whole_address(
    environment: pytest.MonkeyPatch,
) -> None:
    environment.setenv("http_proxy", "http://me:p%40ss@proxy:3128/")
    environment.setenv("no_proxy", "inside.example")
    route = Route.of("http://h:8000/a?b")
    assert (route.target, route.tunnels, route.secured_host) == ("http://h:8000/a?b", False, "")
    assert route.proxy_login == "Basic bWU6cEBzcw=="
    assert Route.of("http://x.inside.example/").proxy is None
    assert Route.of("https://h/").proxy is None


@pytest.mark.parametrize("proxy", ["proxy:3128", "http://proxy:3128", "https://proxy:3128"])
def test_a_proxy_for_https_passes_on(environment: pytest.MonkeyPatch, proxy: str) -> None:
    environment.setenv("HTTPS_PROXY", proxy)
    route = Route.of("https://h/a")
    assert (route.target, route.tunnels, route.secured_host) == ("/a", True, "h")
    assert route.proxy is not None
    assert (route.proxy.url.hostname, route.proxy.url.port, route.proxy_login) == (
        "proxy",
        3128,
        "",
    )


def test_a_proxy_of_another_kind_is_refused(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("http_proxy", "socks5://proxy:1080")
    with pytest.raises(ValueError, match="http_proxy"):
        Route.of("http://h/")
