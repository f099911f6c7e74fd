import pytest

from huai_client.transfer.urls import (
    ContentUrl,
    ContentUrlError,
    Transport,
    mirror_urls,
    stated_url,
    upstream_urls,
)


def test_what_is_asked_for_content(subtests: pytest.Subtests) -> None:
    for text, transport, source in [
        ("rsync://h/m", Transport.DAEMON, "rsync://h/m/"),
        (
            "rsync://u@h.example:8730/m/sub dir/",
            Transport.DAEMON,
            "rsync://u@h.example:8730/m/sub dir/",
        ),
        ("rsync://[::1]:873/m", Transport.DAEMON, "rsync://[::1]:873/m/"),
        ("h::m", Transport.DAEMON, "h::m/"),
        ("u@h::m/p", Transport.DAEMON, "u@h::m/p/"),
        ("h:/srv/mirror", Transport.SHELL, "h:/srv/mirror/"),
        ("u@[fe80::1%eth0]:srv/a:b", Transport.SHELL, "u@[fe80::1%eth0]:srv/a:b/"),
        ("/srv/mir:ror*", Transport.LOCAL, "/srv/mir:ror*/"),
        ("https://h.example", Transport.HTTP, "https://h.example/"),
        ("http://[::1]:8080/a%20b/~c", Transport.HTTP, "http://[::1]:8080/a%20b/~c/"),
    ]:
        with subtests.test(text=text, transport=transport, source=source):
            assert ContentUrl.parse(text) == ContentUrl(transport, source)
            assert str(ContentUrl.parse(text)) == source


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("rsync://u@h:1/m", ("rsync://u@h:1/m/", b"")),
        ("rsync://h/m/a b//./c/", ("rsync://h/m/", b"a b/c/")),
        ("u@h::m/p", ("u@h::m/", b"p/")),
        ("h:m/p", ("h:m/p/", b"")),
        ("/srv/m/p", ("/srv/m/p/", b"")),
    ],
)
def test_a_daemons_module_is_told_from_what_lies_below(text: str, module: object) -> None:
    assert ContentUrl.parse(text).module == module


def test_what_could_be_taken_for_something_else_is_refused(subtests: pytest.Subtests) -> None:
    for text in [
        *("", "mirror", "relative/path", "-e/bin/sh", "--rsh=id", "-oProxyCommand=id:/srv"),
        *("u@-oProxyCommand=id:/srv", "-u@h:/srv", "rsync://-oProxyCommand=id/m", "rsync://h"),
        *("rsync://h/", "rsync://h//m", "rsync://h/-m", "rsync://h:port/m", "rsync://h/m/*"),
        *("rsync://h/m/[a]", "rsync://u:secret@h/m", "h::", "h:::m", "h:", "h:-rf", "h:/srv;id"),
        *("h:/srv$(id)", "h:/srv/`id`", "h:/srv dir", "h:/a/../b", "/srv/../etc", "rsync://h/m/.."),
        *("rsync://h/m\n", "/srv\0", "h:/srv\x7f", "/" + "a" * 5000, "https://", "https:///m"),
        *("https://h:99999/m", "https://u@h/m", "https://u:secret@h/m", "https://h/m?a=b"),
        *("https://h/m#a", "https://h/../m", "https://h/%2e%2e/m", "https://h/a%2f../m"),
        *("https://h/%00", "https://h/%0d%0aX:y", "https://h/%zz", "https://h/a b", "https://h/ä"),
        *("ftp://h/m", "file:///etc"),
    ]:
        with subtests.test(text=text):
            with pytest.raises(ContentUrlError) as caught:
                ContentUrl.parse(text)
            assert "\n" not in caught.value.message
            assert "\0" not in caught.value.message
            assert "secret@" not in caught.value.message or text.startswith("rsync")


def test_who_answers_there(subtests: pytest.Subtests) -> None:
    for text, host, service in [
        ("rsync://h/m", "h", "rsync://h"),
        ("rsync://u@H.example:8730/m", "H.example", "rsync://h.example:8730"),
        ("rsync://[::1]:873/m", "[::1]", "rsync://[::1]:873"),
        ("H::m", "H", "rsync://h"),
        ("u@h::m/p", "h", "rsync://h"),
        ("u@H:/srv/rsync://x/y", "H", "ssh://h"),
        ("[fe80::1%eth0]:srv", "[fe80::1%eth0]", "ssh://[fe80::1%eth0]"),
        ("/srv/h:x", "", ""),
        ("https://H.example:8443/a/b", "H.example", "https://h.example:8443"),
        ("http://[::1]/a", "[::1]", "http://[::1]"),
    ]:
        with subtests.test(text=text, host=host, service=service):
            url = ContentUrl.parse(text)
            assert (url.host, url.service) == (host, service)


def test_an_upstream_may_name_what_gives_nothing_of_this_machine_away() -> None:
    texts = ("gopher://h/m", "/etc", "u@h:/srv", "https://h/m", "https://u:p@h/m", "rsync://h/m")
    urls = upstream_urls(texts)
    assert [str(url) for url in urls] == ["rsync://h/m/", "https://h/m/"]
    assert not any(url.own for url in urls)
    with pytest.raises(ContentUrlError):
        upstream_urls(("gopher://h/m", "/etc"))


def test_large_files_of_the_metadata_host_get_its_login() -> None:
    metadata = ("https://h/huai/git/m.git", "file:///srv/m.git")
    assert stated_url("https://h/huai/content/m/", metadata) == ContentUrl(
        Transport.HTTP, "https://h/huai/content/m/", own=True
    )
    for other in ("http://h/m/", "https://h:8443/m/", "https://o/m/"):
        url = stated_url(other, metadata)
        assert url is not None
        assert not url.own, other
    for text in ("", "rsync://h/m", "/etc", "u@h:/srv", "https://h/../m", "https://h/m?q"):
        assert stated_url(text, metadata) is None, text


def test_mirrors_are_those_that_are_not_asked_anyway() -> None:
    mirrors = ("u@h:/srv", "https://h/m", "rsync://o/m", "/etc")
    own = [ContentUrl.parse("https://h/m/")._replace(own=True)]
    mirrors_left = mirror_urls(mirrors, own)
    assert [(str(url), url.own) for url in mirrors_left] == [("rsync://o/m/", False)]
