"""Files that the disk can no longer read are fetched again; what is not repaired is named."""

import os
from pathlib import Path

import pytest

from huai_client.diff.candidate import Difference, DifferenceKind
from huai_client.verify.recheck import Recheck
from huai_schema.paths import ROOT, RelPath
from tests.support.failing_reads import unreadable
from tests.support.upstream import Downstream, Ended, Pair, Site, assert_equal
from tests.support.verifying import differing_paths, standing


@pytest.fixture(name="pair")
def synced_pair(place: Site) -> Pair:
    up = place.upstream()
    up.many(b"folder", 5)
    up.put(b"file", b"content" * 10_000)
    up.at(b"twin").hardlink_to(up.at(b"file"))
    return up, place.synced_downstream(up)


def run(down: Downstream, path: Path, *arguments: str) -> Ended:
    outcome = unreadable(path, lambda: tuple(down.run(*arguments)))
    assert isinstance(outcome, tuple)
    return Ended(*outcome)


@pytest.mark.parametrize("path", ["file", "folder/3"])
def test_a_repair_replaces_a_file_that_cannot_be_read(pair: Pair, path: str) -> None:
    up, down = pair
    damaged = down.dest / path
    before = damaged.stat().st_ino
    ended = run(down, damaged, "verify", down.name, "--content", "--json")
    assert differing_paths(ended) == [path]
    assert ended.events("difference")[0]["difference"] == DifferenceKind.UNREADABLE
    with damaged.open("rb"):  # so that the new file gets another inode
        ended = run(down, damaged, "verify", down.name, "--content", "--repair", "--json")
        assert ended.code == 0, ended
        assert damaged.stat().st_ino != before
    assert standing(down)["damaged"] == 0
    assert differing_paths(down.verify("--content", "--json")) == []
    assert_equal(up, down)


def test_adopting_replaces_a_file_that_cannot_be_read(pair: Pair) -> None:
    up, down = pair
    damaged = down.dest / "folder" / "3"
    os.utime(damaged, ns=(1, 1))
    before = damaged.stat().st_ino
    with damaged.open("rb"):
        ended = run(down, damaged, "sync", down.name, "--adopt")
        assert ended.code == 0, ended
        assert damaged.stat().st_ino != before
    assert_equal(up, down)


def test_what_is_not_repaired_keeps_its_code(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    _, down = pair
    (down.dest / "folder" / "3").unlink()
    real = Recheck.settle_all

    def settle_all(self: Recheck, *arguments: object, **named: object) -> None:
        real(self, *arguments, **named)  # type: ignore[arg-type]
        self.counts[ROOT] += 1
        self._on_difference(
            Difference(RelPath(b"folder"), DifferenceKind.UNREADABLE, reason="Input/output error")
        )

    monkeypatch.setattr(Recheck, "settle_all", settle_all)
    ended = down.verify("--repair")
    assert ended.code == 47, ended
    assert "1 path cannot be read and is not repaired, for example folder: Input/" in ended.err
    assert (down.dest / "folder" / "3").exists()
    assert standing(down)["damaged"] == 1
    assert "exit code 47: 1 path cannot be read" in down.run("status").out
