"""A poll that finds nothing new still sees that its tree is gone."""

import json
import os
import shutil
from pathlib import Path

import pytest

from huai_schema.errors import ExitCode
from huai_server.commit.commit import commit_tree
from huai_server.commit.result import CommitOptions
from huai_server.config import load as config
from tests.support.upstream import Downstream, Site, assert_equal


@pytest.fixture
def synced(place: Site) -> Downstream:
    """A module with nothing new."""
    up = place.upstream()
    up.many(b"pool", 200)
    up.put(b"top", b"x")
    down = place.synced_downstream(up)
    assert "nothing new" in down.sync().err
    return down


def change_dest(down: Downstream, dest: str) -> None:
    """Name another DEST in client.toml."""
    file = down.root / "client.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(f'dest = "{down.dest}"', f'dest = "{dest}"'), encoding="utf-8")


def test_a_tree_that_is_gone_or_empty(synced: Downstream) -> None:
    shutil.rmtree(synced.dest)
    done = synced.sync()
    assert done.code == ExitCode.DESTINATION
    assert "check that its disk is mounted" in done.err
    synced.dest.mkdir()
    done = synced.sync()
    assert done.code == ExitCode.DESTINATION
    assert "holds nothing of what was synced there" in done.err


def test_another_dest(synced: Downstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "strange").touch()
    monkeypatch.chdir(synced.dest)
    config = synced.root / "client.toml"
    before = config.read_bytes()
    rows = [(dest, "not an absolute path") for dest in ("srv/m/b", "~/b", ".")]
    for dest, reason in (*rows, (str(tmp_path), f"{tmp_path} holds nothing")):
        config.write_bytes(before)
        change_dest(synced, dest)
        done = synced.sync()
        assert done.code == ExitCode.DESTINATION, dest
        assert reason in done.err


def test_a_symlink_is_refused_and_a_part_that_is_gone_is_not(
    synced: Downstream, tmp_path: Path
) -> None:
    shutil.rmtree(synced.dest / "pool")
    assert "nothing new" in synced.sync().err
    os.rename(synced.dest, tmp_path / "moved")
    synced.dest.symlink_to(tmp_path / "moved")
    assert synced.sync().code == ExitCode.DESTINATION


def test_an_empty_module_has_nothing_to_look_for(place: Site) -> None:
    up = place.upstream()
    module = config.load(up.root).module(up.name)
    commit_tree(up.name, module, up.places, CommitOptions(allow_empty=True))
    down = place.downstream(up)
    down.synced()
    assert "nothing new" in down.sync().err


def test_a_state_of_before_is_completed_by_one_run(place: Site) -> None:
    up = place.upstream()
    up.put(b"a/b", b"x")
    down = place.synced_downstream(up)
    values = json.loads(down.state_file.read_text(encoding="utf-8"))
    del values["marks"]
    down.state_file.write_text(json.dumps(values), encoding="utf-8")
    assert "nothing to do" in down.sync().err
    assert down.state.marks == ("a",)
    assert "nothing new" in down.sync().err
    assert_equal(up, down)
