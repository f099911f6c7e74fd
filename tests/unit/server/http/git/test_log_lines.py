"""Git's words about a request are one line of the log, whatever the request has."""

import logging

import pytest

from tests.fuzz.server import SERVER
from tests.support.http_fixtures import packet, post

LOGGER = "huai_server.http.git.answer"


@pytest.mark.parametrize(
    "body",
    [
        packet(b"command=evil\nFAKE line 2026") + b"0000",
        packet(b"command=fetch") + b"0001" + packet(b"want xxx\nFAKE line 2026\n") + b"0000",
        packet(b"command=fetch") + b"0001" + packet(b"FAKE\x1b[2J\tline\n\nmore") + b"0000",
        packet(b"command=ls-refs\n") + packet(b"object-format=FAKE\nline") + b"00010000",
    ],
)
def test_no_line_of_the_log_is_forged(body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        SERVER["server"].run(post(body))
    records = [record for record in caplog.records if record.name == LOGGER]
    assert [record.levelname for record in records] == ["INFO"]
    assert all("FAKE" in record.getMessage() for record in records)
    assert all(record.getMessage().isprintable() for record in records)
