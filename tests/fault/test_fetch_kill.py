"""A fetch that is killed before any of its system calls, or refused one, harms nothing."""

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.repository import Repository
from huai_schema.errors import HuaiError
from tests.fault.sampling import LONG, some_of
from tests.support.committing import Upstream
from tests.support.http_fixtures import git, running
from tests.support.system_calls import CHANGING, KILL, Call, at, never, supervise

FILES = 40


class Fetches:
    """A downstream that can be brought back to where it was before a fetch."""

    def __init__(self, folder: Path, upstream: Upstream, url: str) -> None:
        self.path = folder / "repository"
        self._saved = folder / "saved"
        self._url = url
        self.before = self.fetch()
        upstream.write("d1/new", "new")
        upstream.commit()
        self.after = upstream.head.commit
        shutil.copytree(self.path, self._saved)

    def reset(self) -> None:
        shutil.rmtree(self.path)
        shutil.copytree(self._saved, self.path)

    def fetch(self, *kept: str) -> str:
        store = Repository(self.path)
        commit = store.fetch(MetadataUrl(self._url))
        assert len(list(commit.snapshot.entries())) >= FILES
        store.keep([*kept, commit.id])
        return commit.id

    def run(self) -> str:
        """The fetch that things happen to."""
        try:
            return self.fetch(self.before)
        except HuaiError as error:
            return f"{int(error.exit_code)} {error}"

    def prove_harmless(self, context: object) -> None:
        """What refs name is whole; the next fetch is as good as the first."""
        git("-C", self.path, "fsck", "--full", "--strict", "--no-dangling")
        assert self.fetch(self.before) == self.after, context
        git("-C", self.path, "fsck", "--full", "--strict", "--no-dangling")
        packs = list((self.path / "objects" / "pack").iterdir())
        assert {path.suffix for path in packs} == {".pack", ".idx"}, context
        assert not [path for path in packs if path.name.startswith("tmp")], context
        assert len(packs) == 4, context


@pytest.fixture
def fetches(tmp_path: Path) -> Iterator[Fetches]:
    upstream = Upstream(tmp_path)
    for number in range(FILES):
        upstream.write(f"d{number % 3}/f{number}", "x" * number)
    upstream.commit()
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "m.git").symlink_to(upstream.places.repository)
    with running(tmp_path / "served") as server:
        yield Fetches(tmp_path, upstream, f"{server.url}/git/m.git")


def steps_of(fetches: Fetches, names: tuple[str, ...]) -> list[Call]:
    outcome = supervise(names, fetches.run, never)
    assert outcome.result == fetches.after
    assert len(outcome.calls) > 10, outcome.calls
    return outcome.calls


@pytest.mark.timeout(LONG)
@pytest.mark.slow
def test_a_kill_before_every_system_call(fetches: Fetches) -> None:
    for call in some_of(steps_of(fetches, CHANGING)):
        fetches.reset()
        outcome = supervise(CHANGING, fetches.run, at(call.step, KILL))
        assert outcome.killed, (call, outcome.result)
        fetches.prove_harmless(call)


@pytest.mark.timeout(LONG)
@pytest.mark.slow
def test_every_system_call_may_fail(fetches: Fetches) -> None:
    failed = 0
    for call in some_of(steps_of(fetches, CHANGING)):
        fetches.reset()
        outcome = supervise(CHANGING, fetches.run, at(call.step, errno.ENOSPC))
        assert isinstance(outcome.result, str), (call, outcome)
        assert outcome.result == fetches.after or outcome.result.startswith("11 "), (call, outcome)
        failed += outcome.result != fetches.after
        fetches.prove_harmless((call, outcome.result))
    assert failed > 5
