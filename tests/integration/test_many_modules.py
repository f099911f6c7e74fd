"""`plan` and `verify` of several modules: each for itself, with one exit code for all."""

import json
from typing import TYPE_CHECKING, Any

import pytest

from huai_client.config import load as client_config
from tests.support.upstream import Ended, Site

if TYPE_CHECKING:
    from tests.support.upstream import Downstream

NUMBER = 3


class Mirror:
    """A client with several modules, each with one file that no other has."""

    def __init__(self, place: Site) -> None:
        self.downs: list[Downstream] = []
        for index in range(NUMBER):
            up = place.upstream()
            up.put(f"only-{index}".encode(), b"content")
            up.commit()
            down = place.downstream(up)
            if self.downs:
                module = client_config.load(down.root).module(down.name)
                client_config.add_module(self.downs[0].root, down.name, module)
                down.root = self.downs[0].root
            self.downs.append(down)
        self.names = [down.name for down in self.downs]

    def process(self, *arguments: str) -> Ended:
        return self.downs[0].process(*arguments)

    def events(self, *arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.process(*arguments).out.splitlines()]


@pytest.fixture
def mirror(place: Site) -> Mirror:
    return Mirror(place)


def test_plan_shows_each_under_its_name_and_no_other(mirror: Mirror) -> None:
    done = mirror.process("plan", "--all")
    assert done.code == 0, done
    for index, name in enumerate(mirror.names):
        assert any(
            line.startswith(f"{name}: fetch ") and f"only-{index}" in line
            for line in done.out.splitlines()
        ), done
        assert not (mirror.downs[index].dest / f"only-{index}").exists()
    first, left_out, last = mirror.names
    events = mirror.events("plan", last, first, "--json")
    assert {event["module"] for event in events if event["type"] == "plan"} == {first, last}
    assert left_out not in {event.get("module") for event in events}
    assert events[-1]["type"] == "all-ended"
    mirror.downs[0].dest.rmdir()
    done = mirror.process("plan", "--all")
    assert done.code == 52, done
    assert f"1 of {NUMBER} modules failed: {first} (52" in done.err
    assert "only-1" in done.out
    assert "only-2" in done.out


def test_verify_of_all_looks_at_each_ends_with_47_and_mends(mirror: Mirror) -> None:
    assert mirror.process("sync", "--all").code == 0
    assert mirror.process("verify", "--all", "--content").code == 0
    (mirror.downs[1].dest / "only-1").write_bytes(b"changed")
    done = mirror.process("verify", "--all", "--content")
    assert done.code == 47, done
    assert f"{mirror.names[1]}: " in done.out
    assert "only-1" in done.out
    events = mirror.events("verify", "--all", "--content", "--json")
    verified = {
        each["module"]: each["differences"] for each in events if each["type"] == "verified"
    }
    assert verified == dict(zip(mirror.names, (0, 1, 0), strict=True))
    for index, down in enumerate(mirror.downs):
        (down.dest / f"only-{index}").write_bytes(b"changed")
    assert mirror.process("verify", *mirror.names, "--repair").code == 0
    for index, down in enumerate(mirror.downs):
        assert (down.dest / f"only-{index}").read_bytes() == b"content"
