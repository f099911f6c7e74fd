"""The table of certificates: its values, and the hosts that they are for."""

from pathlib import Path

import pytest

from huai_client.config.tls import (
    NO_TLS,
    SYSTEM_TLS,
    Tls,
    TlsError,
    TlsFiles,
    certificate_hint,
    client_context,
    convert_tls,
)
from huai_program.configuration import ConfigError

BOTH = {"certificate": "/c", "key": "/k"}


def test_a_wrong_table_is_explained(subtests: pytest.Subtests) -> None:
    for table, message in [
        ({"ca": "relative"}, "ca: 'relative' is not an absolute path"),
        ({"ca": "/a\0b"}, "not an absolute path"),
        ({"certificate": "/c"}, "key is missing"),
        ({"key": "/k"}, "certificate is missing"),
        ({"ca": 7}, "ca: expected a text"),
        ({"cert": "/c"}, "certificate"),
        ("/c", "must be a table"),
    ]:
        with subtests.test(table=table, said=message):
            with pytest.raises(ConfigError) as caught:
                convert_tls("client.toml: [modules.m.tls]", table)
            assert message.lower() in f"{caught.value.message} {caught.value.hint}".lower()
            assert caught.value.message.startswith("client.toml: [modules.m.tls]")


def test_the_files_are_for_the_hosts_of_the_table_alone() -> None:
    files = convert_tls("here", {**BOTH, "ca": "/ca"})
    urls = ("https://A.example:444/x", "http://b.example/", "rsync://c.example/m", "https://[::1]/")
    tls = TlsFiles.of(files, urls)
    assert tls.hosts == ("::1", "a.example")
    assert tls.at("https://a.example/git/m.git") == tls.at("https://[::1]:8440/") == files
    strangers = ("https://b.example/", "https://a.example.evil/", "https://[", "")
    assert {tls.at(url) for url in strangers} == {NO_TLS}
    assert TlsFiles.of(None, urls) == SYSTEM_TLS


@pytest.mark.parametrize("key", ["ca", "certificate"])
def test_files_that_cannot_be_used_are_named(key: str, tmp_path: Path) -> None:
    (file := tmp_path / "file").write_text("no certificate")
    file.chmod(0o600)
    for path in (file, tmp_path / "missing"):
        listed = {"ca": str(path)} if key == "ca" else {key: str(path), "key": str(file)}
        with pytest.raises(TlsError, match=str(path)):
            client_context(Tls(**listed))


def test_the_hint_follows_what_is_wrong_with_a_certificate(subtests: pytest.Subtests) -> None:
    for reason, hint in [
        ("certificate verify failed: Hostname mismatch, certificate is not valid for 'h'", "names"),
        ("no alternative certificate subject name matches target host name 'h'", "names"),
        ("certificate verify failed: certificate has expired (_ssl.c:1006)", "administrator"),
        ("certificate verify failed: certificate is not yet valid", "clock"),
        ("certificate verify failed: self-signed certificate", "authority"),
        ("SSL certificate problem: unable to get local issuer certificate", "authority"),
    ]:
        with subtests.test(reason=reason, hint=hint):
            assert hint in certificate_hint(reason)
