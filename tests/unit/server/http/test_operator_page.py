"""The operator's page: many modules, and files of the server that cannot be read."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from huai_program.tables import convert
from huai_server.config.tables import Listen
from huai_server.http.app import Application
from huai_server.http.settings import Grant, Served
from huai_server.state.paths import module_places
from tests.support.html import Element, parse
from tests.support.http_server import Folder

TOKEN = f"huai_{'0' * 12}_{'A' * 43}"


class Operated(Folder):
    """A registry with modules, whose repositories do not exist, and an operator."""

    def __init__(self, root: Path, names: Sequence[str]) -> None:
        super().__init__(root)
        self._modules = {name: module_places(root, name).repository for name in names}

    def served(self) -> Served:
        return super().served()._replace(modules=self._modules)

    def grant(self, token: str) -> Grant | None:
        return Grant(frozenset(), frozenset({"operator"})) if token == TOKEN else None


def view(root: Path, *names: str, start: int = 0) -> Element:
    """Return the page of the operator of modules with these names."""

    async def ask() -> httpx.Response:
        settings = convert("the options of a test", {"port": 0}, Listen)
        transport = httpx.ASGITransport(Application(settings, Operated(root, names)))  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://host") as client:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            return await client.get(f"/operator?start={start}", headers=headers)

    answer = asyncio.run(ask())
    assert answer.status_code == 200
    return parse(answer.text)


def test_many_modules_are_paged(tmp_path: Path) -> None:
    names = [f"m{number:02}" for number in range(45)]
    first = view(tmp_path, *names)
    (link,) = (each for each in first.all("a") if each.attributes.get("rel") == "next")
    assert link["href"] == "./operator?start=40#modules"
    pages = [first, view(tmp_path, *names, start=40)]
    assert [[row.one("th").text for row in page.one("tbody").all("tr")] for page in pages] == [
        *(names[:40], names[40:])
    ]


@pytest.mark.parametrize("lost", ["tokens", "root"])
def test_an_operator_sees_what_is_unknown(tmp_path: Path, lost: str) -> None:
    root = tmp_path / "root"
    if lost == "tokens":
        root.mkdir()
        (root / "tokens.json").write_text("{")

    page = view(root, "m")
    facts = dict(zip((each.text for each in page.all("dt")), page.all("dd"), strict=True))
    assert (facts["Free space"].text == "unknown") == (lost == "root")
    after = [each.text for each in page.one("main").all("h2", "p")][-2:]
    assert (after == ["Tokens", "unknown"]) == (lost == "tokens")
