"""Late digests: commits read nothing, `digest` adds digests and nothing else."""

import os
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

import pytest
from blake3 import blake3

from huai_program.engine import tasks
from huai_program.locking import locked
from huai_schema.diff.diff import diff
from huai_schema.errors import ExitCode
from huai_server.commit import later
from huai_server.commit.later import DigestResult, digest_tree
from huai_server.commit.read_limits import TOO_LARGE, ReadLimits
from huai_server.state.errors import UsageError
from huai_server.store.repository import NoCommitError
from tests.support.committing import NAME, Upstream
from tests.support.sharded import SerialExecutor, configure
from tests.support.tampering import when_read
from tests.support.unprivileged import as_nobody

if TYPE_CHECKING:
    from concurrent.futures import Future

ALL = ReadLimits()


@pytest.fixture
def upstream(short_path: Path) -> Iterator[Upstream]:
    short_path.chmod(0o755)
    upstream = Upstream(short_path)
    upstream.configure(digest="later")
    upstream.write("a/old", "old", mtime=1_000)
    upstream.write("a/new", "new", mtime=3_000)
    upstream.write("b/middle", "middle", mtime=2_000)
    assert upstream.commit().hashed_files == 0
    yield upstream
    upstream.prove_sound()


def digest(upstream: Upstream, limits: ReadLimits = ALL) -> DigestResult:
    return digest_tree(NAME, upstream.module, upstream.places, limits)


def with_digests(upstream: Upstream) -> set[str]:
    return {
        os.fsdecode(path)
        for path, entry in upstream.entries().items()
        if getattr(entry, "digest", None)
    }


def test_a_commit_reads_nothing_and_digest_adds_what_is_missing(upstream: Upstream) -> None:
    assert with_digests(upstream) == set()
    before, (_, past) = upstream.head, upstream.repository.snapshot(upstream.head)
    result = digest(upstream)
    assert (result.changed, result.missing, result.hashed_files) == (True, 0, 3)
    assert upstream.file("a/old").digest == blake3(b"old").digest()
    assert upstream.head.info == before.info._replace(
        serial=before.info.serial + 1, counts=upstream.head.info.counts
    )
    assert [*diff(past, upstream.repository.snapshot(upstream.head)[1])] == []
    assert upstream.head.info.counts == (0,) * len(upstream.head.info.counts)
    again = digest(upstream)
    assert (again.changed, again.hashed_files) == (False, 0)


def test_the_next_commit_keeps_digests_and_reads_nothing(upstream: Upstream) -> None:
    digest(upstream)
    (upstream.tree / "a/old").chmod(0o600)
    (upstream.tree / "a/new").rename(upstream.tree / "a/renamed")
    upstream.write("b/fresh", "fresh")
    assert upstream.commit().hashed_files == 0
    assert with_digests(upstream) == {"a/old", "a/renamed", "b/middle"}
    upstream.commit_listed("b/fresh", "b/middle")
    assert with_digests(upstream) == {"a/old", "a/renamed", "b/middle"}


def test_equal_trees_are_equal_whenever_the_digests_came(upstream: Upstream) -> None:
    digest(upstream)
    digested_id = upstream.entries_id
    upstream.configure(digest="now")
    upstream.commit()
    assert upstream.entries_id == digested_id


def test_the_newest_come_first_and_the_next_run_goes_on(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(later, "_BATCH", 1)
    # The first file is more than the rate allows in the whole time: no second one is begun.
    result = digest(upstream, ReadLimits(seconds=0.2, rate=1))
    assert (result.hashed_files, result.missing) == (1, 2)
    assert with_digests(upstream) == {"a/new"}
    assert digest(upstream).hashed_files == 2
    assert with_digests(upstream) == {"a/new", "b/middle", "a/old"}


def test_rounds_and_batches_leave_nothing_out(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(later, "_ROUND", 3)
    monkeypatch.setattr(later, "_BATCH", 2)
    for number in range(8):
        upstream.write(f"c/{number}", str(number), mtime=5_000)
    upstream.commit()
    result = digest(upstream)
    assert (result.hashed_files, result.missing) == (11, 0)


def test_what_changed_since_the_commit_is_not_committed(upstream: Upstream) -> None:
    upstream.write("a/new", "changed", mtime=4_000)
    (upstream.tree / "a/old").unlink()
    upstream.write("a/unknown", "unknown")
    before = upstream.entries()
    result = digest(upstream)
    assert (result.missing, with_digests(upstream)) == (2, {"b/middle"})
    after = upstream.entries()
    middle = after.pop(upstream.file("b/middle").path)
    before.pop(middle.path)
    assert after == before
    # The digest of what was read is kept for the commit that records the change.
    upstream.commit()
    assert upstream.file("a/new").digest == blake3(b"changed").digest()


def test_what_changes_while_it_is_read_gets_no_digest(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first file that is read has a block index."""
    upstream.configure(block_index=1 << 16)
    for path in ("a/large", "a/new"):
        upstream.write(path, "x" * (1 << 18), mtime=3_000)
    upstream.commit()
    when_read(monkeypatch, lambda: upstream.write("a/new", "NEW", mtime=3_000))
    result = digest(upstream)
    assert [problem.path for problem in result.problems] == [b"a/new"]
    assert (result.exit_code, result.missing) == (ExitCode.INCOMPLETE, 1)
    assert with_digests(upstream) == {"a/large", "a/old", "b/middle"}


def test_what_cannot_be_read_is_named(upstream: Upstream) -> None:
    (upstream.tree / "a/old").chmod(0)
    upstream.commit()
    upstream.give_state_to_nobody()
    result = as_nobody(lambda: digest(upstream))
    assert [problem.path for problem in result.problems] == [b"a/old"]
    assert result.missing == 1


def test_hardlinks_are_read_once_and_all_get_the_digest(upstream: Upstream) -> None:
    os.link(upstream.tree / "a/old", upstream.tree / "z")
    upstream.commit()
    links = upstream.links()
    assert links == {"a/old": "z"}
    assert digest(upstream).hashed_files == 3
    assert upstream.links() == links
    assert upstream.file("z").digest == upstream.file("a/old").digest == blake3(b"old").digest()


def test_lists_are_enough_after_a_commit_of_digests(upstream: Upstream) -> None:
    digest(upstream)
    upstream.write("b/fresh", "fresh")
    result = upstream.commit_listed("b/fresh")
    assert result.listed is not None
    assert result.listed.scan_cause == ""
    assert digest(upstream).hashed_files == 1


def test_a_commit_of_digests_knows_no_other_configuration(upstream: Upstream) -> None:
    """It used the time of the digests as that of the scan, and lists as enough."""
    upstream.configure(exclude=("/a/new",))
    digest(upstream)
    result = upstream.commit_listed("b/middle")
    assert result.listed is not None
    assert result.listed.scan_cause == "the configuration of the module changed"
    assert "a/new" not in upstream.paths()


def test_a_large_file_gets_its_block_index(upstream: Upstream) -> None:
    upstream.configure(block_index=1 << 16)
    upstream.write("large", "x" * (1 << 18))
    upstream.commit()
    blocks = upstream.places.repository / "blocks"
    assert [path for path in blocks.rglob("*") if path.is_file()] == []
    digest(upstream)
    assert len([path for path in blocks.rglob("*") if path.is_file()]) == 1


def test_it_needs_a_commit_and_a_module_with_digests(short_path: Path) -> None:
    upstream = Upstream(short_path)
    with pytest.raises(NoCommitError) as refused:
        digest(upstream)
    assert refused.value.exit_code == ExitCode.UNKNOWN_MODULE
    upstream.configure(digest="off")
    with pytest.raises(UsageError, match="digest") as refused_too:
        digest(upstream)
    assert refused_too.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize("times", [1, 3])
def test_a_process_of_an_engine_does_not_wait_for_a_commit(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """The commit waits for that process; each list is read again when the commit is made."""
    configure(upstream, digest="later")
    monkeypatch.setattr(later, "_BATCH", 1)
    monkeypatch.setattr(later, "_WORKER_PATIENCE", 0.0)
    running = []

    class CommitMeanwhile(SerialExecutor):
        """Runs a task while a commit holds the lock, which it has until the task is done."""

        def submit(self, *args: Any, **kwargs: Any) -> "Future[Any]":
            running.append(args)
            if len(running) > times:
                return super().submit(*args, **kwargs)
            with locked(upstream.places.lock):
                return super().submit(*args, **kwargs)

    monkeypatch.setattr(tasks, "open_engine", lambda _: CommitMeanwhile)
    result = digest_tree(NAME, upstream.module, upstream.places, ALL, engine="local://1")
    assert (result.missing, result.hashed_files, result.problems) == (0, 3, ())
    assert len(running) == 3 + times
    assert upstream.commit().hashed_files == 0
    assert with_digests(upstream) == {"a/old", "a/new", "b/middle"}


def test_only_the_first_list_is_too_large_for_the_time(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine returns many lists without a file when the time is over."""

    class Slow(SerialExecutor):
        """Begins when the time is over."""

        def submit(self, *args: Any, **kwargs: Any) -> "Future[Any]":
            sleep(0.2)
            return super().submit(*args, **kwargs)

    for path in ("a/old", "a/new", "b/middle"):
        with upstream.write(path).open("wb") as file:
            file.truncate(1 << 20)
    upstream.commit()
    configure(upstream, digest="later")
    monkeypatch.setattr(later, "_BATCH", 1)
    monkeypatch.setattr(tasks, "open_engine", lambda _: Slow)
    limits = ReadLimits(seconds=0.2, rate=1)
    result = digest_tree(NAME, upstream.module, upstream.places, limits, engine="local://1")
    assert (result.missing, result.hashed_files) == (3, 0)
    assert [problem.reason for problem in result.problems] == [TOO_LARGE]
