"""`--max-time`: what is done stays, what is left is for the next run, and nothing is half."""

from dataclasses import replace
from pathlib import Path

import pytest

from huai_client.run.options import Deadline
from huai_client.state.hosts import Hosts
from huai_client.transfer.errors import ConnectionBrokenError
from tests.support.transfers import TEST_OPTIONS, Downstream, put_many
from tests.support.upstream import Site, Upstream, assert_equal
from tests.support.weak_network import trickling, unused_port


def test_time_is_up(upstream: Path, down: Downstream, url: str) -> None:
    files = put_many(upstream, 10, 100_000)
    options = replace(TEST_OPTIONS, streams=1, batch_files=2, bwlimit=250)
    first = down.fetch(files, url, replace(options, deadline=Deadline.after(1.5)))
    assert not first.complete
    assert first.arrived
    assert sorted([*first.arrived, *first.late]) == files
    assert (first.missing, first.mismatched, down.listener.retries) == ([], [], [])
    second = down.fetch(files, url, replace(options, bwlimit=0))
    assert second.arrived == files
    assert down.listener.totals[-1][0] == len(first.late)
    # Nothing was fetched twice, and of what was in flight only the rest.
    assert second.bytes_received < sum(file.size for file in first.late) + 20_000


def test_time_is_up_before_it_begins(upstream: Path, down: Downstream) -> None:
    files = put_many(upstream, 2, 10)
    with unused_port() as dead:
        options = replace(TEST_OPTIONS, deadline=Deadline.after(0))
        outcome = down.fetch(files, f"rsync://{dead}/m", options)
    assert (outcome.late, outcome.arrived, down.listener.retries) == (files, [], [])


def test_time_is_up_between_two_attempts(upstream: Path, down: Downstream, tmp_path: Path) -> None:
    files = put_many(upstream, 1, 10)
    hosts = Hosts(tmp_path)
    options = replace(TEST_OPTIONS, backoff=60.0, retries=5, hosts=hosts)
    with unused_port() as dead:
        timed = replace(options, deadline=Deadline.after(0.5))
        assert down.fetch(files, f"rsync://{dead}/m", timed).late == files
        with pytest.raises(ConnectionBrokenError):
            down.fetch(files, f"rsync://{dead}/m", replace(options, retries=0))


class TestMaxTime:
    """A repository of packages, and too little time to fetch all of it at once."""

    @pytest.fixture
    def repository(self, place: Site) -> Upstream:
        up = place.upstream()
        up.many(b"pool", 12, 100_000)
        up.put(b"dists/stable/Release", b"0")
        up.put(b"dists/stable/Packages", b"0")
        up.commit()
        return up

    def test_stops_and_goes_on(self, place: Site, repository: Upstream) -> None:
        down = place.downstream(repository, batch_files=2, streams=1)
        ended = down.sync("--json", "--bwlimit", "300", "--max-time", "2s")
        assert ended.code == 30, ended
        result = ended.events("sync")[0]
        late, total = result["late"], result["summary"]["fetches"]
        assert 0 < late < total
        published = {path.name for path in down.dest.glob("pool/*")}
        assert len(published) >= max(1, total - late - 2)  # packages are shown, their index is not
        assert not (down.dest / "dists" / "stable" / "Release").exists()
        assert down.state.applied is None
        again = down.sync("--json")
        assert again.code == 0, again
        assert again.events("planned")[0]["fetches"] == total - len(published)
        received = result["received"] + again.events("sync")[0]["received"]
        assert received < 12 * 100_000 + 60_000
        assert_equal(repository, down)

    def test_deletes_nothing_while_something_is_left(
        self, place: Site, repository: Upstream
    ) -> None:
        down = place.downstream(repository, batch_files=2, streams=1)
        down.synced()
        repository.many(b"pool/new", 8, 100_000)
        repository.at(b"pool/0").unlink()
        repository.put(b"dists/stable/Release", b"1", mtime=None)
        repository.commit()
        assert down.sync("--bwlimit", "200", "--max-time", "1").code == 30
        assert (down.dest / "pool" / "0").exists()
        assert (down.dest / "dists" / "stable" / "Release").read_bytes() == b"0"
        assert down.sync("--max-time", "1h").code == 0
        assert_equal(repository, down)

    def test_metadata_that_do_not_come_in_time(self, place: Site, repository: Upstream) -> None:
        repository.many(b"more", 300)
        repository.commit()
        with trickling(place.url, 2000) as slow:
            down = place.downstream(repository, url=f"http://{slow}")
            ended = down.sync("--max-time", "2")
        assert ended.code == 30
        assert "the metadata did not arrive in time" in ended.err
        assert [*down.dest.iterdir()] == []

    def test_values(self, place: Site, repository: Upstream, subtests: pytest.Subtests) -> None:
        down = place.downstream(repository)
        for text in ("", "soon", "1y", "-1", "1.5h", "1h\n"):
            with subtests.test(text=text):
                assert down.sync("--max-time", text).code == 1
        ended = down.sync("--max-time", "0")
        assert (ended.code, "time is up" in ended.err) == (30, True)
        assert [*down.dest.iterdir()] == []
        for _ in range(2):
            assert down.sync("--max-time", "1h").code == 0
