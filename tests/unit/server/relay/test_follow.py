"""`serve` relays each new commit once, tries again after a failure, and logs a failure once."""

import logging
from pathlib import Path

import pytest

from huai_schema.errors import HuaiError
from huai_server.config.load import add_module, remove_module
from huai_server.config.tables import Module
from huai_server.relay import follow
from huai_server.relay.follow import Follower


class Relay:
    """A state root with relayed modules, and a record of the relayed ones."""

    def __init__(self, root: Path) -> None:
        self.relayed: list[str] = []
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
        place = self.root / "client" / "modules" / name / "applied"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(state)

    def hand_over(self, name: str) -> list[HuaiError]:
        self.relayed.append(name)
        return [HuaiError("it cannot be", hint="wait")] if self.fails else []

    def look(self) -> list[str]:
        """Return the modules that the next look relays."""
        self.relayed.clear()
        self.follower.look()
        return list(self.relayed)


@pytest.fixture
def relay(tmp_path: Path) -> Relay:
    return Relay(tmp_path)


def test_all_at_first_and_then_what_is_new(relay: Relay) -> None:
    assert relay.look() == ["a", "b"]
    assert relay.look() == []
    relay.applied("b", "22")
    assert relay.look() == ["b"]


def test_what_failed_is_tried_again_and_told_of_once(
    relay: Relay, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "_FIRST_PAUSE", 1e-9)
    relay.fails = True
    with caplog.at_level(logging.WARNING):
        assert relay.look() == ["a", "b"]
        relay.applied("b", "22")
        assert relay.look() == ["b", "a"]
        assert relay.look() == ["b"], "a slow failure must not hold up the next commit for long"
        assert relay.look() == ["a"]
    assert [each.getMessage() for each in caplog.records] == [
        f"{name}: not relayed: it cannot be (wait)" for name in "ab"
    ]


def test_modules_come_and_go(relay: Relay) -> None:
    relay.look()
    remove_module(relay.root / "server", "a")
    relay.add("c")
    assert relay.look() == ["b", "c"]


def test_a_wrong_file_changes_nothing(relay: Relay) -> None:
    relay.look()
    (relay.root / "server" / "server.toml").write_text("[")
    relay.applied("a", "22")
    assert "a" in relay.look()
