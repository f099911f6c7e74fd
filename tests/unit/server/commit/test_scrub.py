"""A scrub distinguishes damage from change, records it, and reads each file once in a round."""

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from blake3 import blake3
from msgspec.structs import replace

from huai_program.engine import tasks
from huai_program.engine.signs import RECORD
from huai_program.locking import LockedError, locked
from huai_schema.errors import ExitCode
from huai_server.commit import scrub
from huai_server.commit.read_limits import ReadLimits
from huai_server.commit.scrub import OTHER_CONTENT, ScrubResult, TooMuchDamageError, scrub_tree
from huai_server.scan.root import EmptyRootError
from huai_server.state.errors import UsageError
from huai_server.store.repository import NoCommitError
from huai_server.store.scrub_record import Round, ScrubRecord, read_record, write_record
from tests.support.committing import NAME, Upstream, run_server
from tests.support.sharded import SerialExecutor, configure
from tests.support.unprivileged import as_nobody

if TYPE_CHECKING:
    from concurrent.futures import Future

ALL = ReadLimits()
SOUND = ("a", "b/c", "b/d/e", "f")


@pytest.fixture
def upstream(short_path: Path) -> Iterator[Upstream]:
    short_path.chmod(0o755)
    upstream = Upstream(short_path)
    for path in SOUND:
        upstream.write(path, f"content of {path}", mtime=1_000)
    upstream.commit()
    yield upstream
    upstream.prove_sound()


def run(upstream: Upstream, limits: ReadLimits = ALL, *, full: bool = True) -> ScrubResult:
    return scrub_tree(NAME, upstream.module, upstream.places, limits, full=full)


def rot(upstream: Upstream, path: str, content: str = "") -> None:
    """Write other content under the same size and time."""
    place = upstream.tree / path
    status = place.stat()
    with place.open("r+b") as file:
        file.write((content.encode() or b"?" * status.st_size)[: status.st_size])
    os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))


def damaged(result: ScrubResult) -> list[str]:
    return sorted(os.fsdecode(each.path) for each in result.record.damage)


def test_a_sound_tree_is_read_once(upstream: Upstream) -> None:
    os.link(upstream.tree / "a", upstream.tree / "z")
    upstream.commit()
    result = run(upstream)
    size = sum(len(f"content of {path}") for path in SOUND)
    assert (result.files, result.bytes, result.changed) == (4, size, 0)
    assert (result.exit_code, result.record.damage) == (ExitCode.OK, ())
    assert result.record.finished


def test_damage_is_told_and_never_committed(upstream: Upstream) -> None:
    before = upstream.file("b/c")
    rot(upstream, "b/c")
    result = run(upstream)
    assert (damaged(result), result.exit_code) == (["b/c"], ExitCode.DAMAGED)
    (damage,) = result.record.damage
    content = (upstream.tree / "b/c").read_bytes()
    assert (damage.expected, damage.found) == (before.digest, blake3(content).digest())
    assert damage.reason == OTHER_CONTENT
    # Its ctime differs, so commits read it.
    for committed in (upstream.commit(), upstream.commit_listed("b/c"), upstream.commit()):
        assert [problem.path for problem in committed.problems] == [b"b/c"]
        assert committed.exit_code == ExitCode.INCOMPLETE
        assert upstream.file("b/c") == before
    (upstream.tree / "b/c").chmod(0o600)
    upstream.commit()
    assert upstream.file("b/c").digest == before.digest
    assert damaged(run(upstream)) == ["b/c"]


def test_what_changed_since_the_commit_is_no_damage(upstream: Upstream) -> None:
    upstream.write("a", "other", mtime=2_000)
    upstream.write("b/c", "content of b/C", mtime=3_000)
    (upstream.tree / "f").unlink()
    (upstream.tree / "b/d").rename(upstream.tree / "b/gone")
    upstream.write("new", "new")
    result = run(upstream)
    assert (result.files, result.changed, result.exit_code) == (4, 4, ExitCode.OK)


def test_what_takes_the_place_of_a_file_is_not_read(upstream: Upstream) -> None:
    for path in ("a", "f"):
        (upstream.tree / path).unlink()
    os.mkfifo(upstream.tree / "a")
    (upstream.tree / "f").symlink_to("b/c")
    (upstream.tree / "b").rename(upstream.tree / "real")
    (upstream.tree / "b").symlink_to("real")
    assert run(upstream).changed == 4


@pytest.mark.parametrize("end", ["restored", "touched", "deleted", "rewritten"])
def test_damage_is_known_until_it_ends(upstream: Upstream, end: str) -> None:
    rot(upstream, "a")
    since = run(upstream).record.damage[0].since
    assert damaged(run(upstream, full=False)) == ["a"]
    if end == "restored":
        upstream.write("a.new", "content of a", mtime=1_000).rename(upstream.tree / "a")
    elif end == "touched":
        os.utime(upstream.tree / "a")
        assert damaged(run(upstream, full=False)) == ["a"]
        upstream.commit()
    elif end == "deleted":
        (upstream.tree / "a").unlink()
    else:
        rot(upstream, "a", "content of a")
    result = run(upstream, full=False)
    assert (damaged(result), result.exit_code, result.files) == ([], ExitCode.OK, 0)
    assert read_record(upstream.places.scrub).damage == ()
    assert since > 0


def test_a_round_finds_that_damage_has_ended_underneath(upstream: Upstream) -> None:
    """A disk returns the right bytes again: inode and ctime are unchanged."""
    rot(upstream, "a")
    record = run(upstream).record
    (damage,) = record.damage
    rot(upstream, "a", "content of a")
    status = (upstream.tree / "a").stat()
    identity = (status.st_ino, status.st_ctime_ns)
    other = replace(damage, identity=identity)
    write_record(upstream.places.scrub, ScrubRecord(record.current, record.finished, (other,)))
    assert damaged(run(upstream, full=False)) == ["a"]
    assert damaged(run(upstream)) == []


def test_damage_that_stays_is_as_old_as_it_is(upstream: Upstream) -> None:
    rot(upstream, "a")
    record = run(upstream).record
    older = replace(record.damage[0], since=5, identity=(1, 1))
    write_record(upstream.places.scrub, ScrubRecord(record.current, record.finished, (older,)))
    for full in (False, True):
        (damage,) = run(upstream, full=full).record.damage
        assert damage.since == 5
        assert damage.identity != (1, 1)


def test_the_next_run_goes_on(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub, "_FILES", 1)
    # The first file is more than the rate allows in the whole time.
    first = run(upstream, ReadLimits(seconds=0.3, rate=1))
    assert first.files == 1
    assert first.record.current
    assert first.record.current.after == b"a"
    rot(upstream, "b/c")
    (upstream.tree / "a").unlink()
    upstream.commit()
    assert [run(upstream, ReadLimits(0.3, 1)).files, run(upstream).files] == [1, 2]


def test_a_file_that_there_is_no_time_for_is_named(upstream: Upstream) -> None:
    with (upstream.tree / "0").open("wb") as file:
        file.truncate(1 << 20)
    upstream.commit()
    result = run(upstream, ReadLimits(seconds=0.2, rate=1))
    assert [problem.path for problem in result.problems] == [b"0"]
    assert (result.files, result.exit_code) == (0, ExitCode.INCOMPLETE)
    assert run(upstream).files == 5


def test_only_what_is_due_is_read(upstream: Upstream) -> None:
    upstream.configure(scrub="10d")
    assert run(upstream, full=False).files == 0
    record = read_record(upstream.places.scrub)
    assert record.current
    half = Round(record.current.begun - 10 * 86400 * 9 // 20)
    write_record(upstream.places.scrub, ScrubRecord(half))
    first = run(upstream, full=False)
    assert first.files in {1, 2, 3}
    late_round = Round(half.begun - 10 * 86400, after=b"a", files=1, size=1)
    write_record(upstream.places.scrub, ScrubRecord(late_round))
    assert run(upstream, full=False).files == 3


def test_an_edit_in_place_that_no_commit_notices_is_found(upstream: Upstream) -> None:
    """Size and time are restored, and a mode explains the new ctime."""
    rot(upstream, "a")
    (upstream.tree / "a").chmod(0o600)
    result = upstream.commit()
    assert (result.hashed_files, result.changed) == (0, True)
    assert upstream.file("a").digest == blake3(b"content of a").digest()
    assert damaged(run(upstream)) == ["a"]
    os.utime(upstream.tree / "a")
    upstream.commit()
    assert upstream.file("a").digest == blake3(b"????????????").digest()
    assert damaged(run(upstream, full=False)) == []


@pytest.mark.parametrize(("options", "says"), [([], True), (["--full"], False), (["--all"], False)])
def test_a_run_that_has_nothing_to_read_says_so(
    upstream: Upstream, options: list[str], says: bool
) -> None:
    run_server(upstream.root, "add", NAME, str(upstream.tree))
    done = run_server(upstream.root, "scrub", *([] if "--all" in options else [NAME]), *options)
    assert done.returncode == 0, done.stderr
    assert ("`scrub` is not set in server.toml" in done.stderr) is says
    assert ("4 files" in done.stdout) is ("--full" in options)


def test_without_a_span_nothing_is_due(upstream: Upstream) -> None:
    write_record(upstream.places.scrub, ScrubRecord(Round(1)))
    assert (run(upstream, full=False).files, run(upstream, full=False).due) == (0, 0)


def test_what_has_no_digest_is_left_out(upstream: Upstream) -> None:
    upstream.configure(digest="later")
    upstream.write("new", "new")
    upstream.commit()
    assert run(upstream).files == 4


def test_what_is_volatile_is_no_damage(upstream: Upstream) -> None:
    upstream.configure(volatile=("/a",))
    upstream.commit()
    rot(upstream, "a")
    assert (run(upstream).changed, run(upstream).exit_code) == (1, ExitCode.OK)


def test_what_cannot_be_read_is_named(upstream: Upstream) -> None:
    (upstream.tree / "a").chmod(0)
    upstream.commit()
    upstream.give_state_to_nobody()
    result = as_nobody(lambda: run(upstream))
    assert [problem.path for problem in result.problems] == [b"a"]
    assert result.exit_code == ExitCode.INCOMPLETE


@pytest.mark.parametrize("url", ["", "local://2"])
def test_much_damage_ends_the_run(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    configure(upstream)
    monkeypatch.setattr(scrub, "MOST_DAMAGE", 2)
    monkeypatch.setattr(scrub, "_FILES", 1)
    for path in SOUND:
        rot(upstream, path)
    for _ in range(2):
        with pytest.raises(TooMuchDamageError) as refused:
            scrub_tree(NAME, upstream.module, upstream.places, ALL, full=True, engine=url)
        assert refused.value.exit_code == ExitCode.DAMAGED
    assert len(read_record(upstream.places.scrub).damage) == 2


def test_two_runs_do_not_meet(upstream: Upstream) -> None:
    with locked(upstream.places.scrubbing), pytest.raises(LockedError):
        run(upstream)
    # A commit may run meanwhile.
    with locked(upstream.places.lock):
        assert run(upstream).files == 4


def test_a_record_that_cannot_be_read_is_none(upstream: Upstream) -> None:
    upstream.places.scrub.write_bytes(b"{")
    assert run(upstream).files == 4


def test_an_empty_tree_is_a_disk_that_is_not_mounted(upstream: Upstream) -> None:
    moved_tree = upstream.tree.with_name("kept")
    upstream.tree.rename(moved_tree)
    upstream.tree.mkdir()
    with pytest.raises(EmptyRootError):
        run(upstream)


def test_it_needs_a_commit_and_digests(short_path: Path) -> None:
    upstream = Upstream(short_path)
    upstream.places.folder.mkdir(parents=True)
    with pytest.raises(NoCommitError):
        run(upstream)
    upstream.configure(digest="off")
    with pytest.raises(UsageError):
        run(upstream)


def test_the_findings_of_another_node_are_looked_at_here(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without the mount sees no file, and one with a bad disk sees damage."""

    def lie(_: object, __: object, ___: object, files: list[Any]) -> Any:
        return len(files), [(0, (None, errno.EIO)), *((row, (None, 0)) for row in (1, 2, 3))]

    monkeypatch.setattr(tasks, "open_engine", lambda _: SerialExecutor)
    monkeypatch.setattr(scrub, "_READER", scrub._READER._replace(read=lie))
    configure(upstream)
    rot(upstream, "b/c")
    result = scrub_tree(NAME, upstream.module, upstream.places, ALL, full=True, engine="serial")
    assert (result.files, result.changed, damaged(result)) == (4, 0, ["b/c"])


def test_a_process_of_a_killed_run_answers_nobody(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It found the file sound, and writes its record when the next run has read the damage."""
    orphans: list[dict[str, Any]] = []

    class Killed(SerialExecutor):
        def submit(self, _: Any, /, *args: Any, **__: Any) -> "Future[Any]":
            orphans.append(json.loads(args[1]))
            raise KeyboardInterrupt

    class Late(SerialExecutor):
        def submit(self, *args: Any, **kwargs: Any) -> "Future[Any]":
            done = super().submit(*args, **kwargs)
            for task in orphans:
                place = Path(task["folder"], task["key"] + RECORD)
                scrub._READER.record.save(place, scrub._ListFindings(len(task["files"]), []))
            return done

    configure(upstream)
    monkeypatch.setattr(tasks, "open_engine", lambda _: Killed)
    with pytest.raises(KeyboardInterrupt):
        scrub_tree(NAME, upstream.module, upstream.places, ALL, full=True, engine="serial")
    rot(upstream, "b/c")
    monkeypatch.setattr(tasks, "open_engine", lambda _: Late)
    result = scrub_tree(NAME, upstream.module, upstream.places, ALL, full=True, engine="serial")
    assert (len(orphans), result.files, damaged(result)) == (1, 4, ["b/c"])


def test_a_list_that_has_a_result_is_not_read_again(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Any] = []

    def count(*arguments: Any) -> Any:
        read.append(arguments)
        return scrub._read(*arguments)

    class Twice(SerialExecutor):
        def submit(self, *args: Any, **kwargs: Any) -> "Future[Any]":
            super().submit(*args, **kwargs)
            return super().submit(*args, **kwargs)

    monkeypatch.setattr(tasks, "open_engine", lambda _: Twice)
    monkeypatch.setattr(scrub, "_READER", scrub._READER._replace(read=count))
    configure(upstream)
    result = scrub_tree(NAME, upstream.module, upstream.places, ALL, full=True, engine="serial")
    assert (result.files, len(read)) == (4, 1)
