"""URLs are split, and shown without secrets."""

import pytest

from huai_program.urls import login_of, masked, same_service, service_of, split_url, without_login


def test_services(subtests: pytest.Subtests) -> None:
    for url, service in [
        ("https://user:secret@Host.Example/git/m.git", "https://host.example"),
        ("http://host:8440", "http://host:8440"),
        ("rsync://[::1]:873/m/", "rsync://[::1]:873"),
        ("/srv/m.git", ""),
        ("git@host:m", ""),
        ("http://host:port/", ""),
    ]:
        with subtests.test(url=url, service=service):
            assert service_of(url) == service


def test_a_service_is_scheme_host_and_port() -> None:
    assert same_service("https://H/a", "https://h:443/b")
    assert same_service("http://h:80/", "http://h/")
    for other in ("http://h/", "https://h:444/", "https://h.example/", "https://i/"):
        assert not same_service("https://h/", other)


@pytest.mark.parametrize(
    ("url", "login", "rest"),
    [
        ("https://me:pw@host/a", "me:pw", "https://host/a"),
        ("https://me@example.org:pw@host:8/a", "me@example.org:pw", "https://host:8/a"),
        ("HTTP://me@host", "me", "HTTP://host"),
        ("https://host/@a", None, "https://host/@a"),
        ("/srv/a@b", None, "/srv/a@b"),
    ],
)
def test_a_login_is_all_before_the_last_at_of_the_host(
    url: str, login: str | None, rest: str
) -> None:
    assert (login_of(url), without_login(url)) == (login, rest)


def test_what_is_shown(subtests: pytest.Subtests) -> None:
    for url, expected in [
        ("https://me:secret@host:8440/m.git", "https://host:8440/m.git"),
        ("https://me@example.org:secret@host/", "https://host/"),
        ("HTTP://me:secret@host/", "HTTP://host/"),
        (" https://me:secret@host/", "https://host/"),
        ("https://host/x?token=secret", "https://host/x?…"),
        ("https://host/x#secret", "https://host/x#…"),
        ("https://me:sec/ret@host/", "https://…"),
        ("https://me:1/2@host/", "https://…"),
        ("https://me:sec?ret@host/", "https://…"),
        ("me@example.org:secret@host", "…"),
        ("http:/me:secret@host/", "…"),
        ("host/x?token=secret", "host/x?…"),
        ("https://host/npm/@scope/x", "https://host/npm/@scope/x"),
        ("rsync://user@host/module", "rsync://host/module"),
        ("user@host:/srv/m", "user@host:/srv/m"),
        ("host::module/x", "host::module/x"),
        ("/srv/a@b?c", "/srv/a@b?c"),
        ("http://[::1]:80/", "http://[::1]:80/"),
        ("http://host:port/", "http://host:port/"),
        ("", ""),
    ]:
        with subtests.test(url=url, shown=expected):
            assert masked(url) == expected


@pytest.mark.parametrize(
    "url", ["http://me:secret/x@h/", "http://[secret/", "http://h\u2100secret/"]
)
def test_errors_quote_nothing(url: str) -> None:
    with pytest.raises(ValueError, match="malformed") as caught:
        split_url(url)
    assert "secret" not in str(caught.value)
