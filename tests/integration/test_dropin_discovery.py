"""A source whose host serves huai's metadata needs no configuration at all."""

import os
from pathlib import Path

import pytest

from huai_client.config import load
from huai_client.places import module_places
from huai_client.state import load as load_state
from tests.integration.counting_proxy import counting
from tests.integration.rsync_calls import TUNASYNC, picture, program, run
from tests.integration.upstream import Ended, Site


class Newcomer:
    """Somebody who has a tree that rsync made, and wrote `huai-rsync` for `rsync`."""

    def __init__(self, place: Site, folder: Path) -> None:
        self.up = place.upstream()
        self.up.many(b"pool", 5)
        self.up.commit()
        self.source = f"{place.content_url}/{self.up.name}/"
        self.dest, self.root = folder / "copy", folder / "root"
        self.program = program(folder)
        self.url = place.url
        assert run("rsync", "-a", self.source, str(self.dest), environment={}).code == 0

    def call(self, *options: str, source: str = "", **settings: str) -> Ended:
        """`huai-rsync`."""
        environment = {
            "HUAI_CLIENT_ROOT": str(self.root),
            "HUAI_RSYNC_UPSTREAM": self.url,
            **settings,
        }
        target = (source or self.source, f"{self.dest}/")
        return run(self.program, *options, *target, environment=environment)

    def modules(self) -> list[str]:
        """What stands in client.toml."""
        return list(load(self.root).modules)


@pytest.fixture
def newcomer(place: Site, tmp_path: Path) -> Newcomer:
    return Newcomer(place, tmp_path)


def test_one_word_is_enough(newcomer: Newcomer) -> None:
    up = newcomer.up
    for number in range(3):
        up.put(b"pool/new %d" % number, b"content")
        up.commit()
        ended = newcomer.call(*TUNASYNC)
        assert (ended.code, ended.err) == (0, "")
        assert picture(newcomer.dest) == picture(up.tree)
        assert newcomer.modules() == [up.name]
    module = load(newcomer.root).module(up.name)
    assert (module.owners, module.safe_links) == (False, True)
    assert load_state(module_places(newcomer.root, up.name).state).applied


def test_what_the_call_leaves_out_becomes_the_filter(newcomer: Newcomer, tmp_path: Path) -> None:
    (tmp_path / "list").write_text("/pool/1\n*.iso\n# no more\n")
    own = newcomer.dest / "own.iso"
    own.touch()
    options = (*TUNASYNC, f"--exclude-from={tmp_path}/list", "--exclude", "[x]")
    for number in range(2):
        newcomer.up.put(b"pool/new %d" % number, b"content")
        newcomer.up.put(b"large %d.iso" % number, b"content")
        newcomer.up.commit()
        ended = newcomer.call(*options)
        assert (ended.code, "the real rsync runs" in ended.err) == (0, False)
        assert sorted(os.listdir(newcomer.dest)) == ["own.iso", "pool"]
        assert (newcomer.dest / f"pool/new {number}").exists()
    assert len(load(newcomer.root).module(newcomer.up.name).filter) == 3


def test_a_dry_run_configures_nothing(newcomer: Newcomer) -> None:
    assert newcomer.call(*TUNASYNC, "-n").code == 0
    assert newcomer.modules() == []
    assert os.listdir(newcomer.root / "modules") == []


def test_it_can_be_forbidden(newcomer: Newcomer) -> None:
    ended = newcomer.call(*TUNASYNC, HUAI_RSYNC_DISCOVER="no", HUAI_RSYNC_EXPLAIN="yes")
    assert (ended.code, newcomer.modules()) == (0, [])
    reason = "no module has this destination"
    assert ended.err == f"huai-rsync: the real rsync runs: {reason}\n"


def test_a_first_copy_is_left_to_rsync(newcomer: Newcomer) -> None:
    for name in os.listdir(newcomer.dest):
        (newcomer.dest / name).rename(newcomer.root.parent / f"away-{name}")
    assert newcomer.call(*TUNASYNC).code == 0
    assert newcomer.modules() == []
    assert picture(newcomer.dest) == picture(newcomer.up.tree)


def test_without_a_place_for_its_state_it_is_rsync(newcomer: Newcomer) -> None:
    newcomer.root.write_text("no folder")
    newcomer.up.put(b"pool/new", b"content")
    newcomer.up.commit()
    ended = newcomer.call(*TUNASYNC)
    assert ended.code == 0, ended
    assert (newcomer.dest / "pool/new").exists()


def test_too_many_deletions_are_rsyncs_until_the_module_is_known(newcomer: Newcomer) -> None:
    for number in range(1100):
        (newcomer.dest / f"own {number}").touch()
    assert newcomer.call(*TUNASYNC, HUAI_RSYNC_FALLBACK="no").code == 0
    assert newcomer.modules() == []
    assert picture(newcomer.dest) == picture(newcomer.up.tree)


def test_who_has_no_huai_is_asked_once_a_day(newcomer: Newcomer, place: Site) -> None:
    with counting(place.url) as counted:
        newcomer.url = counted.url
        for _ in range(2):
            source = f"{place.content_url}/{newcomer.up.name}/pool/"
            ended = newcomer.call(*TUNASYNC, source=source, HUAI_RSYNC_EXPLAIN="yes")
            assert ended.code == 0
            assert "no module has this destination" in ended.err
    assert len(counted.requests) == 1
    assert newcomer.modules() == []


def test_the_name_alone_proves_nothing(newcomer: Newcomer, place: Site) -> None:
    """A server that has a module of that name, and names another source for it."""
    other = place.upstream(content_urls=("rsync://elsewhere.example/x",))
    other.many(b"other", 3)
    other.commit()
    folder = newcomer.up.tree / other.name
    folder.mkdir()
    (folder / "mine").write_text("mine")
    source = f"{newcomer.source}{other.name}/"
    for _ in range(2):
        ended = newcomer.call(*TUNASYNC, source=source)
        assert (ended.code, ended.err) == (0, "")
        assert os.listdir(newcomer.dest) == ["mine"]
    assert newcomer.modules() == []
    assert os.listdir(newcomer.root / "modules") == []
