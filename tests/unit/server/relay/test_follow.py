"""`serve` hands on what is new, once, tries again what failed, and tells of it once."""

import logging
from pathlib import Path

import pytest

from huai_schema.errors import HuaiError
from huai_server.config.load import add_module, remove_module
from huai_server.config.tables import Module
from huai_server.relay import follow
from huai_server.relay.follow import Follower


class Given:
    """What a follower asked for."""

    def __init__(self, root: Path) -> None:
        self.handed: list[str] = []
        self.fails = False
        self.follower = Follower(root / "server", self.hand_over)
        self.root = root
        (root / "server").mkdir()
        for name in ("a", "b"):
            self.add(name)
            self.applied(name, "1")

    def add(self, name: str) -> None:
        module = Module(path="/srv", relay=str(self.root / "client"))
        add_module(self.root / "server", name, module)

    def applied(self, name: str, state: str) -> None:
        place = self.root / "client" / "modules" / name / "state.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(state)

    def hand_over(self, name: str) -> None:
        self.handed.append(name)
        if self.fails:
            raise HuaiError("it cannot be", hint="wait")

    def looked(self) -> list[str]:
        """The modules that the next look hands on."""
        self.handed.clear()
        self.follower.look()
        return list(self.handed)


@pytest.fixture
def given(tmp_path: Path) -> Given:
    return Given(tmp_path)


def test_all_at_first_and_then_what_is_new(given: Given) -> None:
    assert given.looked() == ["a", "b"]
    assert given.looked() == []
    given.applied("b", "22")
    assert given.looked() == ["b"]


def test_what_failed_is_tried_again_and_told_of_once(
    given: Given, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "_FIRST_PAUSE", 1e-9)
    given.fails = True
    with caplog.at_level(logging.WARNING):
        assert given.looked() == ["a", "b"]
        assert given.looked() == ["a", "b"]
    assert [each.getMessage() for each in caplog.records] == [
        f"{name}: not handed on: it cannot be (wait)" for name in "ab"
    ]


def test_modules_come_and_go(given: Given) -> None:
    given.looked()
    remove_module(given.root / "server", "a")
    given.add("c")
    assert given.looked() == ["b", "c"]


def test_a_wrong_file_changes_nothing(given: Given) -> None:
    given.looked()
    (given.root / "server" / "server.toml").write_text("[")
    given.applied("a", "22")
    assert "a" in given.looked()
