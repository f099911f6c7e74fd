"""A commit with an export that is killed before any rename is finished by the next commit."""

import shutil
from pathlib import Path

import pytest

from huai_server import modules
from huai_server.config_tables import Module, ModuleExport
from huai_server.paths import module_places
from huai_server.store.check import check_repository
from huai_server.store.repository import Repository
from tests.support.committing import NAME
from tests.support.mirror_files import names
from tests.support.system_calls import KILL, at, never, supervise

LISTS = {"fullfilelist", f"fullfiletimelist-{NAME}", f"imagelist-{NAME}"}
RENAMING = ("rename",)


def run(root: Path) -> int:
    return int(modules.commit(root, NAME).exit_code)


def prove(root: Path, tree: Path) -> None:
    """One more commit at most, and what is listed is what is there."""
    assert run(root) == 0
    assert not modules.commit(root, NAME).result.changed
    there = {str(path.relative_to(tree)) for path in tree.rglob("*")}
    assert set(names((tree / "fullfilelist").read_bytes())) == there - LISTS
    repository = Repository(module_places(root, NAME).repository)
    head = repository.head()
    assert head is not None
    assert head.info.totals.entries == len(there) + 1
    assert check_repository(NAME, repository).faults == ()


@pytest.mark.slow
def test_a_kill_before_every_rename(short_path: Path) -> None:
    tree, root = short_path / "tree", short_path / "state"
    for number in range(200):
        (tree / f"d{number % 3}").mkdir(parents=True, exist_ok=True)
        (tree / f"d{number % 3}/f{number}").write_text("x")
    export = ModuleExport(files=("arch", "fedora", "ls-lR", "trace"), host="mirror.example")
    modules.add(root, NAME, Module(str(tree), export=export))
    assert run(root) == 0
    (tree / "d0/new").write_text("new")
    saved = short_path / "saved"
    for place in (tree, root):
        shutil.copytree(place, saved / place.name)
    outcome = supervise(RENAMING, lambda: run(root), never)
    assert outcome.result == 0
    prove(root, tree)
    assert len(outcome.calls) > 5
    for call in outcome.calls:
        for place in (tree, root):
            shutil.rmtree(place)
            shutil.copytree(saved / place.name, place)
        assert supervise(RENAMING, lambda: run(root), at(call.step, KILL)).killed, call
        prove(root, tree)
