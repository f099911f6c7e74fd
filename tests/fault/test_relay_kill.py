"""A hand-over that is killed before any of its system calls serves one commit or the other."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_schema.errors import HuaiError
from huai_server import modules
from huai_server.config import add_module
from huai_server.config_tables import Module
from huai_server.paths import module_places
from huai_server.store.check import check_repository
from huai_server.store.disk_use import disk_use
from huai_server.store.repository import Repository
from tests.fault.sampling import CUTS
from tests.support.committing import fsck
from tests.support.system_calls import CHANGING, Cut, supervise
from tests.support.upstream import Downstream, site


class Relay:
    """A relayed module at its first serial, whose client has applied the third."""

    def __init__(self, down: Downstream, root: Path) -> None:
        self.name = down.name
        self.root = root
        self.places = module_places(root, down.name)
        self._saved = root.with_name("saved")
        add_module(root, down.name, Module(path=str(down.dest), relay=str(down.root)))

    def hand_over(self) -> str:
        try:
            modules.relay(self.root, self.name)
        except HuaiError as error:
            return f"{int(error.exit_code)} {error.message}"
        return "done"

    def save(self) -> None:
        shutil.copytree(self.root, self._saved)

    def reset(self) -> None:
        shutil.rmtree(self.root)
        shutil.copytree(self._saved, self.root)

    @property
    def history(self) -> list[int]:
        return [head.info.serial for head in Repository(self.places.repository).history()]

    def prove_harmless(self, context: object) -> None:
        """Sound at one serial or the other, and finished by the next run."""
        assert self.history in ([1], [3, 1]), context
        for _ in range(2):
            fsck(self.places.repository)
            repository = Repository(self.places.repository)
            assert check_repository(self.name, repository).faults == (), context
            assert self.hand_over() == "done", context
        assert self.history == [3, 1], context
        assert disk_use(self.places).unfinished == (0, 0), context


@pytest.fixture
def relay(short_path: Path) -> Iterator[Relay]:
    with site(short_path / "site") as place:
        up = place.upstream()
        up.many(b"folder", 200)
        down = place.synced_downstream(up)
        (short_path / "relay").mkdir()
        found = Relay(down, short_path / "relay")
        assert found.hand_over() == "done"
        for number in range(2):
            up.put(b"folder/new", b"%d" % number)
            up.commit()
        down.synced()
        found.save()
        yield found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_kill_before_its_system_calls(relay: Relay) -> None:
    counting = Cut(0)
    assert supervise(CHANGING, relay.hand_over, counting).result == "done"
    assert relay.history == [3, 1]
    assert counting.passed > 10
    every = -(-counting.passed // (3 * CUTS))
    killed = 0
    for point in (*range(1, counting.passed, every), counting.passed):
        relay.reset()
        outcome = supervise(CHANGING, relay.hand_over, Cut(point))
        killed += outcome.killed
        relay.prove_harmless((point, outcome.calls[-1]))
    assert killed > CUTS
