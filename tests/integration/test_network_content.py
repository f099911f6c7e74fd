"""Content upstreams that are down, silent, slow or cut, and others that stand in."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from huai_client.state.hosts import Hosts
from huai_client.transfer import UpstreamSilentError
from tests.support.rsyncd import rsync_daemon
from tests.support.transfers import TEST_OPTIONS, Downstream, put_many
from tests.support.weak_network import Weakness, nobody, silent, trickling, weak

IMPATIENT = replace(TEST_OPTIONS, timeout=2, contimeout=1, retries=0)


def remembered(root: Path) -> dict[str, str]:
    """Service to reason."""
    return {row[0]: row[4] for row in json.loads((root / "upstreams.json").read_text())}


def test_who_is_down_is_asked_last_in_the_next_run(
    upstream: Path, down: Downstream, tmp_path: Path
) -> None:
    files = put_many(upstream, 2, 10)
    with nobody() as dead, rsync_daemon({"m": upstream}) as url:
        urls = [f"rsync://{dead}/m", f"{url}/m"]
        options = replace(TEST_OPTIONS, hosts=Hosts(tmp_path))
        assert down.fetch(files[:1], urls, options).complete
        assert [dead in reason for reason in down.listener.retries] == [True]
        assert [*remembered(tmp_path)] == [f"rsync://{dead}"]
        with silent() as hole:  # would be asked first, if nothing were remembered of it
            later = replace(options, hosts=Hosts(tmp_path))
            later.hosts.health.failed(f"rsync://{hole}", "silent")
            assert down.fetch(files[1:], [f"rsync://{hole}/m", *urls], later).complete
            assert len(down.listener.retries) == 1, "the silent one is not asked"


def test_who_answers_again_is_good(upstream: Path, down: Downstream, tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    with rsync_daemon({"m": upstream}) as url:
        hosts.health.failed(url, "down")
        options = replace(TEST_OPTIONS, hosts=hosts)
        assert down.fetch(put_many(upstream, 1, 10), f"{url}/m", options).complete
    assert remembered(tmp_path) == {}


def test_a_module_that_one_refuses_is_remembered_of_its_url(
    upstream: Path, down: Downstream, tmp_path: Path
) -> None:
    options = replace(TEST_OPTIONS, hosts=Hosts(tmp_path))
    with rsync_daemon({"m": upstream}) as url:
        urls = [f"{url}/other", f"{url}/m"]
        assert down.fetch(put_many(upstream, 1, 10), urls, options).complete
        assert [*remembered(tmp_path)] == [f"{url}/other/"]


def test_a_silent_one_gives_way(upstream: Path, down: Downstream, tmp_path: Path) -> None:
    options = replace(IMPATIENT, hosts=Hosts(tmp_path))
    with silent() as hole, rsync_daemon({"m": upstream}) as url:
        urls = [f"rsync://{hole}/m", f"{url}/m"]
        assert down.fetch(put_many(upstream, 1, 10), urls, options).complete
        assert [*remembered(tmp_path)] == [f"rsync://{hole}"]


def test_a_trickle_is_ended_and_what_came_stays(upstream: Path, down: Downstream) -> None:
    files = put_many(upstream, 1, 200_000)
    with rsync_daemon({"m": upstream}) as url, trickling(url, 100) as slow:
        with pytest.raises(UpstreamSilentError, match="too slowly"):
            down.fetch(files, f"rsync://{slow}/m", IMPATIENT)
        assert down.fetch(files, [f"rsync://{slow}/m", f"{url}/m"], IMPATIENT).complete


@pytest.mark.parametrize("stalls", [False, True])
def test_a_line_that_breaks_in_the_middle(
    upstream: Path, down: Downstream, tmp_path: Path, *, stalls: bool
) -> None:
    files = put_many(upstream, 10, 100_000)
    options = replace(IMPATIENT, streams=1, hosts=Hosts(tmp_path))
    broken = Weakness(most=500_000, stalls=stalls)
    with rsync_daemon({"m": upstream}) as url, weak(url, broken) as bad:
        outcome = down.fetch(files, [f"rsync://{bad}/m", f"{url}/m"], options)
    assert outcome.arrived == files
    assert sorted(down.listener.arrived) == sorted(file.path for file in files)  # each once
    # What the other one sent is what was left.
    assert outcome.bytes_received < 620_000
    assert [*remembered(tmp_path)] == [f"rsync://{bad}"]


def test_a_line_that_is_slow_and_good_enough(upstream: Path, down: Downstream) -> None:
    files = put_many(upstream, 1, 8000)
    with rsync_daemon({"m": upstream}) as url, trickling(url, 2500) as slow:
        assert down.fetch(files, f"rsync://{slow}/m", IMPATIENT).complete
