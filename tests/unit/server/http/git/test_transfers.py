"""The price that an address pays for the work of git."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from huai_server.config.tables import Listen
from huai_server.http.asgi.responder import Responder
from huai_server.http.git import app
from tests.support.http_fixtures import ls_refs

TYPE = b"application/x-git-upload-pack-request"


class Anybody:
    """Access to one repository."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def repository(self, _scope: object, _name: str) -> Path:
        return self._path

    def client(self, scope: Any) -> str:
        return str(scope["client"][0])


def test_an_address_without_allowance_starts_no_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []

    async def answer(_git: object, call: object, _body: object, out: Responder) -> None:
        started.append(call)
        await out.send_all(b"pack")

    # Any work is too much, and nothing comes back.
    for name, value in (("answer", answer), ("_GIT_SECONDS", 0.0), ("_GIT_GROWTH", 1e-9)):
        monkeypatch.setattr(app, name, value)
    access: Any = Anybody(tmp_path)
    served = app.GitApp(Listen(), access, access)

    async def fetch(address: str, body: bytes = b"0000") -> int:
        statuses: list[int] = []
        messages = [{"type": "http.request", "body": body}]

        async def receive() -> Any:
            if not messages:
                await asyncio.Event().wait()
            return messages.pop()

        async def send(message: Any) -> None:
            statuses.extend([message["status"]] if "status" in message else [])
            await asyncio.sleep(0)

        headers = [(b"content-type", TYPE), (b"git-protocol", b"version=2")]
        scope = {"path": "/git/m.git/git-upload-pack", "method": "POST", "headers": headers}
        await served({**scope, "client": (address, 1)}, receive, send)
        return statuses[0]

    assert [asyncio.run(fetch("10.0.0.1")) for _ in range(2)] == [200, 503]
    assert len(started) == 1
    assert asyncio.run(fetch("10.0.0.2")) == 200
    assert asyncio.run(fetch("10.0.0.1", ls_refs())) == 200, "refs cost little"
