"""The operator's page where files of the server cannot be read."""

import asyncio
from pathlib import Path

import httpx
import pytest

from huai_program.tables import convert
from huai_server.config.tables import Listen
from huai_server.http.app import Application
from huai_server.http.settings import Grant, Served
from huai_server.state.paths import module_places
from tests.support.html import parse
from tests.support.http_server import Folder

TOKEN = f"huai_{'0' * 12}_{'A' * 43}"


class Operated(Folder):
    """A registry with one module, whose repository does not exist, and an operator."""

    def __init__(self, repository: Path) -> None:
        super().__init__(repository.parent)
        self._repository = repository

    def served(self) -> Served:
        return super().served()._replace(modules={"m": self._repository})

    def grant(self, token: str) -> Grant | None:
        return Grant(frozenset(), frozenset({"operator"})) if token == TOKEN else None


@pytest.mark.parametrize("lost", ["tokens", "root"])
def test_an_operator_sees_what_is_unknown(tmp_path: Path, lost: str) -> None:
    root = tmp_path / "root"
    if lost == "tokens":
        root.mkdir()
        (root / "tokens.json").write_text("{")

    async def ask() -> httpx.Response:
        settings = convert("the options of a test", {"port": 0}, Listen)
        app = Application(settings, Operated(module_places(root, "m").repository))
        transport = httpx.ASGITransport(app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://host") as client:
            return await client.get("/operator", headers={"Authorization": f"Bearer {TOKEN}"})

    answer = asyncio.run(ask())
    assert answer.status_code == 200
    page = parse(answer.text)
    facts = dict(zip((each.text for each in page.all("dt")), page.all("dd"), strict=True))
    assert (facts["Free space"].text == "unknown") == (lost == "root")
    after = [each.text for each in page.one("main").all("h2", "p")][-2:]
    assert (after == ["Tokens", "unknown"]) == (lost == "tokens")
