"""The record of parts follows the commits, and costs what they change."""

import random
from pathlib import Path

import pytest

from huai_client.diff.selection import Selection
from huai_client.filters import Rules
from huai_client.metadata.repository import Repository
from huai_client.state.paths import module_places
from huai_client.state.verification import VerificationRecord
from huai_client.verify.parts import follow_selection
from huai_schema.git.objects import Kind
from tests.support.local_trees import at
from tests.support.upstream import Downstream, Pair, Site, Upstream

MANY = 135
"""More than a directory may hold to have no part of its own."""


def selection_of(down: Downstream, *rules: bytes) -> Selection:
    """Return what is applied, through a filter."""
    assert down.state.applied
    places = module_places(down.root, down.name)
    repository = Repository(places.repository, make=False)
    return Selection(repository.commit(down.state.applied).snapshot, Rules.parse(rules))


def follow(place: Path, selection: Selection) -> list[bytes]:
    with VerificationRecord(place) as record:
        follow_selection(record, "0" * 40, selection)
        record.begin_run()
        return [*record.due(at(b""), content=False, damaged_first=False, most=10**6)]


@pytest.fixture(name="pair")
def synced_pair(place: Site) -> Pair:
    up = place.upstream()
    for number in range(8):
        up.many(b"top%d" % number, MANY)
        up.many(b"deep/er/d%d" % number, MANY)
    return up, place.synced_downstream(up)


def reads(down: Downstream, place: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many objects are read to follow."""
    count = 0
    real = Repository.read

    def read(self: Repository, oid: bytes, kind: Kind) -> bytes:
        nonlocal count
        assert kind == "tree", "no manifest has to be read"
        count += 1
        return real(self, oid, kind)

    with monkeypatch.context() as patch:
        selection = selection_of(down)
        patch.setattr(Repository, "read", read)
        follow(place, selection)
    return count


def test_it_costs_what_changed(pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    up, down = pair
    record = tmp_path / "record"
    assert reads(down, record, monkeypatch) >= 18
    assert reads(down, record, monkeypatch) == 0
    up.put(b"deep/er/d3/new", b"1")
    up.commit()
    down.synced()
    assert reads(down, record, monkeypatch) <= 4


def test_it_is_like_a_new_record(pair: Pair, tmp_path: Path) -> None:
    up, down = pair
    record = tmp_path / "record"
    follow(record, selection_of(down))
    choice = random.Random(1)
    for step in range(6):
        if step == 3:
            up.at(b"deep/er").rename(up.at(b"deep/est"))
        for _ in range(3):
            change(up, choice)
        up.commit()
        down.synced("--max-delete", "100%")
        rules = (b"- top1/",) if step == 4 else ()
        selection = selection_of(down, *rules)
        fresh = tmp_path / f"fresh{step}"
        assert sorted(follow(record, selection)) == sorted(follow(fresh, selection))


def change(up: Upstream, choice: random.Random) -> None:
    """Let a directory grow until it is a part, or shrink until it is not, or go."""
    name = choice.choice([b"top%d" % choice.randrange(12), b"deep/er/d%d" % choice.randrange(12)])
    folder = up.at(name)
    if not folder.exists() or len([*folder.iterdir()]) < MANY:
        up.many(name, MANY)
        return
    for path in sorted(folder.iterdir())[choice.choice((0, 100)) :]:
        path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()
