"""A mirror as an upstream: it relays the commits that it applied, unchanged, and nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from huai_server.actions import modules
from huai_server.config import load as server_config
from huai_server.static.newest import is_published
from tests.support.processes import run_program, until
from tests.support.relaying import Relay, relaying
from tests.support.rewriting import Rewriting
from tests.support.upstream import ENVIRONMENT, Site, Upstream, assert_equal


class Tiers:
    """An upstream, a mirror of it that relays, and mirrors of that."""

    def __init__(self, up: Upstream, relay: Relay) -> None:
        self.up = up
        self.relay = relay
        self.name = up.name

    def publish(self) -> int:
        """Commit and sync; the serial that the mirror has then."""
        serial = self.up.commit().head.info.serial
        self.relay.down.synced()
        return serial


@pytest.fixture
def tiers(place: Site, tmp_path: Path) -> Iterator[Tiers]:
    """The mirror is in step, and its server is running."""
    up = place.upstream()
    up.put(b"a", b"1")
    up.many(b"folder", 300)
    with relaying(place.synced_downstream(up), tmp_path) as relay:
        yield Tiers(up, relay)


def git(*arguments: str) -> str:
    done = run_program("git", *arguments, env=ENVIRONMENT)
    assert done.returncode == 0, done
    return done.stdout.strip()


def wait_for_serial(relay: Relay, serial: int) -> None:
    until(lambda: relay.serial == serial and is_published(relay.places.repository))


def test_commits_that_were_applied_are_served_unchanged(tiers: Tiers) -> None:
    up, relay = tiers.up, tiers.relay
    wait_for_serial(relay, 1)
    for number in range(3):
        up.put(b"a", b"%d" % number)
        wait_for_serial(relay, tiers.publish())

    def log(repository: Path, *options: str) -> str:
        return git("--git-dir", str(repository), "log", "--format=raw", *options)

    upstream = up.places.repository
    oldest = log(upstream, "-1", "main~3")
    assert log(upstream) == f"{log(relay.places.repository, '-3')}\n\n{oldest}"
    checked = relay.run("check", tiers.name, "--json")
    assert checked.code == 0, checked


def test_a_downstream_of_it_is_served_all_and_then_steps(tiers: Tiers) -> None:
    relay = tiers.relay
    wait_for_serial(relay, 1)
    tiers.up.at(b"folder").rename(tiers.up.tree / "elsewhere")  # so that nothing comes from there
    below = relay.downstream()
    below.synced()
    assert below.verify("--content").code == 0
    (tiers.up.tree / "elsewhere").rename(tiers.up.at(b"folder"))
    tiers.up.put(b"folder/new", b"new")
    wait_for_serial(relay, tiers.publish())
    below.synced()
    assert_equal(tiers.up, below)


def test_commits_that_the_mirror_missed_are_gaps(tiers: Tiers, tmp_path: Path) -> None:
    relay = tiers.relay
    wait_for_serial(relay, 1)
    below = relay.downstream()
    below.synced()
    url, copy = f"{relay.url}/git/{tiers.name}.git", str(tmp_path / "copy")
    git("clone", "--quiet", "--mirror", url, copy)
    for serial in (3, 5):
        for number in range(2):
            tiers.up.put(b"a", b"%d, %d" % (serial, number))
            tiers.up.commit()
        relay.down.synced()
        wait_for_serial(relay, serial)
    assert [head.info.serial for head in relay.repository.history()] == [5, 3, 1]
    below.synced()
    assert_equal(tiers.up, below)
    for number, options in enumerate(((), ("--depth", "1"))):
        clone = str(tmp_path / f"clone{number}")
        git("clone", "--quiet", "--bare", *options, url, clone)
        assert git("--git-dir", clone, "rev-parse", "main") == tiers.up.commit().head.commit
    git("--git-dir", copy, "fetch", "--update-shallow")
    assert git("--git-dir", copy, "rev-parse", "main") == tiers.up.commit().head.commit
    for command in ("check", "maintain"):
        done = relay.run(command, tiers.name)
        assert done.code == 0, done
    fresh = relay.downstream()
    fresh.synced()
    assert_equal(tiers.up, fresh)


def test_plain_files_of_it_are_served_too(tiers: Tiers, tmp_path: Path) -> None:
    relay = tiers.relay
    (tmp_path / "static").mkdir()
    config = relay.root / "server.toml"
    config.write_text(f'{config.read_text()}\n[static]\nto = ["{tmp_path}/static"]\n')
    below = relay.downstream()
    head = tmp_path / "static" / "git" / f"{tiers.name}.git" / "static" / "head"
    for number in range(3):
        tiers.up.put(b"folder/new", b"%d" % number)
        wait_for_serial(relay, tiers.publish())
        until(lambda: head.exists() and f"\t{relay.serial}\n" in head.read_text())
        assert f"content\t{relay.content_url}\n" in head.read_text()
        below.synced()
        assert below.state.relay_urls == (relay.content_url,)
    assert_equal(tiers.up, below)


def test_a_copy_that_could_not_be_written_is_written_later(tiers: Tiers, tmp_path: Path) -> None:
    relay, copy = tiers.relay, tmp_path / "static"
    config = relay.root / "server.toml"
    config.write_text(f'{config.read_text()}\n[static]\nto = ["{copy}"]\n')
    until(relay.places.copying.exists)  # it was tried
    copy.mkdir()
    head = copy / "git" / f"{tiers.name}.git" / "static" / "head"
    until(lambda: head.exists() and f"\t{relay.serial}\n" in head.read_text())


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"filter": ("- folder/",)}, "a filter leaves out a part"),
        ({"protect": ("/folder/7",)}, "protect leaves out /folder/7"),
        ({"protect": ("*.local",)}, "protect has '*.local', which may leave out a part"),
    ],
)
def test_a_part_of_a_mirror_is_not_relayed(
    place: Site, tmp_path: Path, settings: dict[str, Any], reason: str
) -> None:
    up = place.upstream()
    up.many(b"folder", 10)
    with relaying(place.synced_downstream(up, **settings), tmp_path) as relay:
        done = relay.relayed()
        assert (done.code, reason in done.err) == (47, True), done
        assert relay.serial == 0
        assert relay.downstream().sync().code == 45


def test_a_path_that_is_only_here_may_be_protected(place: Site, tmp_path: Path) -> None:
    up = place.upstream()
    up.put(b"a", b"1")
    down = place.downstream(up, protect=("/trace/mirror.example",))
    up.commit()
    (down.dest / "trace").mkdir()
    (down.dest / "trace" / "mirror.example").write_text("mine")
    down.synced()
    with relaying(down, tmp_path) as relay:
        wait_for_serial(relay, 1)


def test_a_commit_that_was_not_published_is_not_relayed(tiers: Tiers) -> None:
    relay, up = tiers.relay, tiers.up
    wait_for_serial(relay, 1)
    up.put(b"gone", b"soon")
    up.commit()
    up.at(b"gone").unlink()
    assert relay.down.sync().code == 24
    relay.handed()
    assert relay.serial == 1
    up.commit()
    serial = tiers.publish()
    wait_for_serial(relay, serial)
    relay.down.configure(filter=("- folder/",))
    up.put(b"a", b"2")
    tiers.publish()
    assert relay.relayed().code == 47
    assert relay.serial == serial, "a mirror that becomes a part stays at its last whole commit"
    event = json.loads(relay.run("status", tiers.name, "--json").out)
    assert "a filter leaves out a part" in event["relay"]["problem"]


def test_an_upstream_that_goes_back_is_refused_on_every_tier(tiers: Tiers) -> None:
    up, relay = tiers.up, tiers.relay
    up.put(b"a", b"2")
    wait_for_serial(relay, tiers.publish())
    below = relay.downstream()
    below.synced()
    Rewriting(up.places.repository).point("main~1")
    up.put(b"a", b"1")
    assert relay.down.sync().code == 46
    relay.handed()
    assert relay.serial == 2

    relay.down.synced("--accept-rollback")
    done = relay.relayed()
    assert (done.code, "serial 1 is not above the served serial 2" in done.err) == (46, True), done
    assert (below.sync().code, relay.serial) == (0, 2)
    relay.handed("--accept-rollback")
    assert below.sync().code == 46
    below.synced("--accept-rollback")
    assert [head.info.serial for head in relay.repository.history()] == [1]
    assert relay.run("check", tiers.name).code == 0


def test_another_module_of_that_name_is_refused(tiers: Tiers) -> None:
    up, relay = tiers.up, tiers.relay
    up.put(b"a", b"2")
    wait_for_serial(relay, tiers.publish())
    module = server_config.load(up.root).module(up.name)
    modules.remove(up.root, up.name, purge=True)
    modules.add(up.root, up.name, module)
    for number in range(4):
        up.put(b"a", b"new %d" % number)
        up.commit()
    relay.down.synced("--accept-rollback")
    done = relay.relayed()
    assert (done.code, "another module with the same name" in done.err) == (46, True), done
    assert relay.serial == 2


def test_no_commits_of_its_own(tiers: Tiers) -> None:
    for command in ("commit", "digest", "scrub", "watch"):
        done = tiers.relay.run(command, tiers.name)
        assert (done.code, "its commits are made upstream" in done.err) == (40, True), done
        assert command == "watch" or tiers.relay.run(command, "--all").code == 0
