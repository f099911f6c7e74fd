"""A password in a URL, even a malformed one, is in no message."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from huai_client.config.load import convert_attest
from huai_client.inspect.config_check import check_url
from huai_client.metadata import http
from huai_client.metadata.http import MetadataUrl
from huai_client.transfer.urls import ContentUrl
from huai_program.urls import masked
from huai_schema.errors import HuaiError
from huai_server.config.check import check_urls
from tests.support.committing import Upstream
from tests.support.examples import examples
from tests.support.upstream import Downstream

FORMS = (
    *("https://me:{}@host/", "https://me@example.org:{}@host/", "HTTP://me:{}@host:8440/m.git"),
    *(" https://me:{}@host/", "https://me:12/{}@host/", "https://{}@host/"),
    *("https://host/?token={}", "https://host:80/x?token={}", "https://host/x#{}"),
    *("rsync://me:{}@host/m", "me@example.org:{}@host", "me:{}@host/m", "//me:{}@host/"),
    *("http:/me:{}@host/", "ssh://me:{}@host/m"),
)
PASSWORDS = st.lists(st.sampled_from("@/?#:% \\[]&=.-"), max_size=4).map(
    lambda between: "".join(f"{each}SECRET" for each in ("", *between))
)


def messages(url: str) -> list[str]:
    """Return all messages about a URL."""
    texts = [masked(url), str(MetadataUrl(url)), str(MetadataUrl.of(url, "m"))]
    for judge in (
        check_url,
        ContentUrl.parse,
        lambda text: http._make_request(MetadataUrl(text), http.Request("x")),
        lambda text: convert_attest("place", ({"key": "/k", "urls": [text]},), "m"),
        lambda text: check_urls("place", "m", (text,)),
    ):
        try:
            judge(url)
        except HuaiError as error:
            texts += [error.message, error.hint]
        except ValueError as error:
            texts.append(str(error))
    return texts


@pytest.mark.parametrize("form", FORMS)
@given(password=PASSWORDS)
def test_no_message_has_a_password_in_it(form: str, password: str) -> None:
    url = form.format(password)
    assert not [each for each in messages(url) if "SECRET" in each], url


@pytest.fixture(name="metadata", scope="module")
def committed_metadata(tmp_path_factory: pytest.TempPathFactory) -> str:
    up = Upstream(tmp_path_factory.mktemp("up"))
    (up.tree / "file").touch()
    up.commit()
    return f"file://{up.places.repository}"


@examples(8)
@given(
    key=st.sampled_from(("url", "content_urls")),
    form=st.sampled_from([form for form in FORMS if form.lstrip().lower().startswith("http")]),
    password=PASSWORDS,
)
@example(key="content_urls", form="https://me:12/{}@host/", password="SECRET")  # noqa: S106
@example(key="content_urls", form="http:/me:{}@host/", password="SECRET")  # noqa: S106
@example(key="url", form="https://me:{}@host/", password="SECRET@SECRET/SECRET")  # noqa: S106
def test_no_command_shows_a_password(metadata: str, key: str, form: str, password: str) -> None:
    url = form.replace("example.org", "127.0.0.1").replace("host", "localhost").format(password)
    with tempfile.TemporaryDirectory() as folder:
        down = Downstream("m", Path(folder) / "dest", Path(folder) / "root")
        down.dest.mkdir()
        down.root.mkdir(mode=0o700)
        values = {"url": metadata, "content_urls": [], "dest": str(down.dest)}
        values[key] = url if key == "url" else [url]
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in values.items()]
        (down.root / "client.toml").write_text("[modules.m]\n" + "".join(lines))
        for command in ("sync m", "doctor m", "status", "log m"):
            for options in ((), ("--json",)):
                done = down.run(*command.split(), *options)
                assert "SECRET" not in done.out + done.err, (url, command)
        for path in down.root.rglob("*"):
            if path.is_file() and path.name != "client.toml":
                assert b"SECRET" not in path.read_bytes(), (url, path)
