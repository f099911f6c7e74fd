import errno
import fcntl
import os
from pathlib import Path

import pytest
from blake3 import blake3

from huai_client.config.modes import DefaultMode
from huai_client.staging import Arrival, Staging, StagingBusyError, StagingError
from huai_client.state.seen import SeenDigests, SeenFile
from huai_client.tree import NotOursError, handles
from huai_client.tree.errors import StorageError
from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import parent, rel_path
from tests.support.staged import incoming, ready
from tests.support.system_calls import at, supervise
from tests.support.unprivileged import run_unprivileged

T0 = 1_600_000_000_123_456_789
CONTENT = b"content of a file\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    dest = tmp_path / "dest"
    dest.mkdir()
    return dest / ".~tmp~" / "huai"


def _file(path: bytes = b"sub/a", *, content: bytes = CONTENT, mtime: int = T0) -> File:
    return File(rel_path(path), len(content), mtime, digest=blake3(content).digest())


def _accept(
    staging: Staging, file: File, run: int = 0, *, cut: bool = False, ended: bool = True
) -> Arrival:
    """Return the verdict on the file of a run."""
    return staging.incoming.accept([file], run, cut=cut, ended=ended)[0]


def _arrive(staging: Staging, file: File, content: bytes = CONTENT, run: int = 0) -> Path:
    place = incoming(staging, run) / os.fsdecode(file.path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    os.utime(place, ns=(file.mtime, file.mtime))
    return place


def test_a_file_that_cannot_be_hashed_has_no_seen_digest_of_an_older_one(
    root: Path, tmp_path: Path
) -> None:
    files = [_file(name)._replace(digest=None) for name in (b"arrived", b"gone", b"linked")]
    with (
        SeenDigests(tmp_path / "seen") as seen_digests,
        Staging(root, seen_digests=seen_digests) as staging,
    ):
        older = [SeenFile(*file[:3], blake3(b"older").digest()) for file in files]
        seen_digests.replace((), older)
        run = staging.incoming.begin(())
        _arrive(staging, files[0], run=run)
        staging.keep(run, files[:2], files[2:])
        assert [*map(seen_digests.find, files)] == [blake3(CONTENT).digest(), None, None]


@pytest.mark.parametrize("ended", [True, False])
def test_what_fits_becomes_ready_and_stays_so(root: Path, *, ended: bool) -> None:
    file = _file()
    with Staging(root) as staging:
        assert not staging.ready(file)
        assert _accept(staging, file) is Arrival.MISSING
        place = _arrive(staging, file)
        assert _accept(staging, file, ended=ended) is Arrival.ARRIVED
        assert place.exists() is ended  # else a process may still write here
        assert staging.ready(file)
        assert ready(staging, file).read_bytes() == CONTENT
    with Staging(root) as staging:
        staging.recover([file])
        assert staging.ready(file)
        assert ready(staging, file).read_bytes() == CONTENT
    assert root.stat().st_mode & 0o7777 == 0o700


def test_a_path_that_no_system_call_takes_is_moved(root: Path) -> None:
    path = b"/".join([b"d" * 250] * 16) + b"/" + b"f" * 78  # 4095 bytes of rsync's own
    file = _file(path)
    with Staging(root) as staging:
        with (
            staging.incoming.opened(0) as top,
            handles.opened(top, parent(file.path), make=True) as folder,
        ):
            target = os.open(b"f" * 78, os.O_WRONLY | os.O_CREAT, dir_fd=folder)
            os.write(target, CONTENT)
            os.utime(target, ns=(T0, T0))
            os.close(target)
        assert _accept(staging, file) is Arrival.ARRIVED
        assert ready(staging, file).read_bytes() == CONTENT


def test_no_run_writes_to_the_folder_of_another(root: Path) -> None:
    first, second = _file(b"d/first"), _file(b"d/second")
    with Staging(root, boot=b"1") as staging:
        runs = [staging.incoming.begin([first]), staging.incoming.begin([second])]
        for file, run in zip([first, second], runs, strict=True):
            _arrive(staging, file, run=run)
            assert _accept(staging, file, run) is Arrival.ARRIVED
    with Staging(root, boot=b"1") as staging:
        runs.append(staging.incoming.begin([]))
    assert len(set(runs)) == 3


def test_what_was_verified_survives_what_is_salvaged_around_it(root: Path) -> None:
    complete, half = _file(b"d/whole"), _file(b"d/half", content=b"x" * 100)
    with Staging(root, boot=b"1") as staging:
        run = staging.incoming.begin([complete, half])
        _arrive(staging, complete, run=run)
        _arrive(staging, half, b"x" * 60, run=run)
        _arrive(staging, _file(b"d/more"), run=run)
        (incoming(staging, run) / "link").symlink_to("/")
        verdicts = staging.incoming.accept([complete, half], run)
        assert verdicts == [Arrival.ARRIVED, Arrival.MISMATCH]
        staging.incoming.salvage(run, {half.path: half})
        left = [path for path in incoming(staging, run).rglob("*") if not path.is_dir()]
        assert left == [ready(staging, complete)]
        again = staging.incoming.begin([half])
        assert (incoming(staging, again) / "d/half").read_bytes() == b"x" * 60


def test_what_a_crash_left_in_the_tree_as_well_is_let_alone(root: Path) -> None:
    needed, other = _file(b"d/wanted"), _file(b"d/other")
    present = [root.parent.parent / name for name in ("wanted", "other")]
    with Staging(root, boot=b"1") as staging:
        for file, path in zip((needed, other), present, strict=True):
            path.hardlink_to(_arrive(staging, file))
    with Staging(root, boot=b"1") as staging:
        staging.incoming.recover([needed])
        assert not staging.ready(needed)
    for path in present:
        assert (path.stat().st_nlink, path.stat().st_mtime_ns) == (1, T0)


def test_hardlinks_that_were_about_to_be_published_are_parted(root: Path) -> None:
    one, other = _file(b"d/one"), _file(b"e/other")
    with Staging(root) as staging:
        place = _arrive(staging, one)
        (place.parent / "a-link").hardlink_to(place)
        os.symlink("one", place.parent / "a-symlink")
        published = _arrive(staging, other)
        (root.parent.parent / "other").hardlink_to(published)
    with Staging(root) as staging:
        staging.incoming.recover([one, other])
        assert staging.ready(one)
        assert not staging.ready(other)
        assert os.listdir(ready(staging, one).parent) == ["one"]


@pytest.mark.parametrize("ended", [True, False])
def test_what_is_verified_gets_its_attributes(root: Path, *, ended: bool) -> None:
    good, rough, shut, unchanged, undigested = (_file(b"sub/%d" % number) for number in range(5))
    good, shut = good._replace(mode=0o4755), shut._replace(mode=0o044)
    unchanged, undigested = (
        unchanged._replace(mode=DefaultMode(0o644)),
        undigested._replace(digest=None),
    )
    files = [good, rough, shut, unchanged, undigested]
    with Staging(root, finish=(lambda _: None, lambda _: None)) as staging:
        for file in files:
            _arrive(staging, file).chmod(0o600)
        _arrive(staging, rough._replace(mtime=T0 - T0 % 10**9))
        assert staging.incoming.accept(files, 0, ended=ended) == [Arrival.ARRIVED] * 5
        left = [shut, unchanged, undigested]
        assert staging.incoming.unfinished(files) == (left if ended else files)
        status = [ready(staging, file).stat() for file in files]
    modes = [each.st_mode & 0o7777 for each in status]
    assert modes == ([0o4755, 0o644] if ended else [0o600] * 2) + [0o600] * 3
    assert (status[1].st_mtime_ns == T0) is ended


def test_an_owner_that_cannot_be_set_is_left_for_later(root: Path) -> None:
    ours, theirs = _file(b"ours"), _file(b"theirs")._replace(owner=b"other")
    numbers = {ours.owner: os.geteuid(), b"other": os.geteuid() + 1}
    with Staging(root, finish=(numbers.get, lambda _: None)) as staging:
        for file in (ours, theirs):
            _arrive(staging, file)
        assert staging.incoming.accept([ours, theirs], 0) == [Arrival.ARRIVED] * 2
        assert staging.incoming.unfinished([ours, theirs]) == (
            [] if os.geteuid() == 0 else [theirs]
        )


def what_nobody_may_read_is_recovered(folder: Path) -> None:
    """Run as an ordinary user, too: a run was cut when the file had its final mode already."""
    file = _file(b"d/shut")
    root = folder / ".~tmp~" / "huai"
    with Staging(root, boot=b"1") as staging:
        _arrive(staging, file).chmod(0o044)
    with Staging(root, boot=b"1") as staging:
        staging.incoming.recover([file])
        assert staging.ready(file)


def test_what_nobody_may_read_is_recovered(short_path: Path) -> None:
    if os.geteuid() != 0:
        what_nobody_may_read_is_recovered(short_path)
        return
    short_path.chmod(0o777)
    run_unprivileged(what_nobody_may_read_is_recovered, short_path)


def test_what_another_thread_left_is_taken_over_in_the_same_process(root: Path) -> None:
    first, second = _file(b"first"), _file(b"second")
    with Staging(root, boot=b"1") as staging:
        run = staging.incoming.begin([first, second])
        _arrive(staging, first, run=run)
        assert staging.incoming.accept([first, second], run)[0] is Arrival.ARRIVED
        _arrive(staging, second, run=run)  # and then it was stopped
        staging.incoming.recover([second])
        for file in (first, second):
            assert ready(staging, file).read_bytes() == CONTENT


def test_an_exception_ends_a_verification(root: Path) -> None:
    class EnoughError(Exception):
        pass

    def enough() -> None:
        raise EnoughError

    file = File(rel_path(b"a"), 1 << 33, T0, digest=bytes(32))  # read for longer than until asked
    with Staging(root) as staging:
        place = _arrive(staging, file, b"")
        os.truncate(place, file.size)
        os.utime(place, ns=(T0, T0))
        with pytest.raises(EnoughError):
            staging.incoming.accept([file], 0, check=enough)


def test_size_time_and_digest_have_to_fit(root: Path) -> None:
    """An old peer sends whole seconds; without a digest size and time decide."""
    old, full_second = -1_500_000_000, 10**9
    plain = _file(b"plain")._replace(digest=None)
    arrivals = [
        (_file(b"size"), CONTENT + b"x", T0, Arrival.MISMATCH),
        (_file(b"nanosecond"), CONTENT, T0 + 1, Arrival.MISMATCH),
        (_file(b"second"), CONTENT, T0 + full_second, Arrival.MISMATCH),
        (_file(b"digest"), CONTENT.upper(), T0, Arrival.MISMATCH),
        (_file(b"peer"), CONTENT, T0 // full_second * full_second, Arrival.ARRIVED),
        (_file(b"old", mtime=old), CONTENT, old // full_second * full_second, Arrival.ARRIVED),
        (plain, CONTENT.upper(), T0, Arrival.ARRIVED),
    ]
    with Staging(root) as staging:
        for file, content, mtime, verdict in arrivals:
            place = _arrive(staging, file._replace(mtime=mtime), content)
            assert _accept(staging, file) is verdict, file.path
            assert staging.ready(file) is (verdict is Arrival.ARRIVED), file.path
            assert verdict is Arrival.ARRIVED or place.exists(), file.path


def test_the_time_of_a_partial_file_proves_nothing_after_a_cut(root: Path) -> None:
    file = _file(mtime=5)._replace(digest=None)
    with Staging(root) as staging:
        _arrive(staging, file)
        assert _accept(staging, file, cut=True) is Arrival.MISMATCH
        assert _accept(staging, file) is Arrival.ARRIVED


def test_a_symlink_to_a_directory_is_not_walked(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_bytes(CONTENT)
    os.utime(outside / "a", ns=(T0, T0))
    with Staging(root) as staging:
        (incoming(staging, 0) / "sub").symlink_to(outside)
        assert _accept(staging, _file()) is Arrival.MISMATCH
        staging.incoming.salvage(0, {})
        assert list(staging.root.glob("incoming/*")) == []
    assert (outside / "a").read_bytes() == CONTENT


@pytest.mark.parametrize("planted", [".~tmp~", ".~tmp~/huai"])
def test_a_planted_symlink_is_not_followed(root: Path, tmp_path: Path, planted: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    place = root.parent.parent / planted
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside)
    with pytest.raises(NotOursError) as caught:
        Staging(root)
    assert caught.value.exit_code == ExitCode.DESTINATION
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("folder", ["incoming", "ready", "partial", "unverified", "incoming/0"])
def test_a_symlink_planted_inside_is_removed(root: Path, tmp_path: Path, folder: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "0").mkdir()
    (root / folder).parent.mkdir(parents=True)
    (root / folder).symlink_to(outside)
    file = _file()
    with Staging(root) as staging:
        staging.incoming.recover([file])
        _arrive(staging, file)
        assert _accept(staging, file) is Arrival.ARRIVED
        staging.incoming.salvage(0, {})
    assert [path.name for path in outside.rglob("*")] == ["0"]


def test_dest_has_to_be_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("missing", "file", "link"):
        with pytest.raises(StagingError):
            Staging(tmp_path / name / ".~tmp~" / "huai")


def foreign_staging_is_refused(folder: Path) -> None:
    """Run as an ordinary user: `folder` is ours, the staging area in it is root's."""
    with pytest.raises((StagingError, NotOursError), match=r"another user|Permission denied"):
        Staging(folder / ".~tmp~" / "huai")


def test_a_staging_area_of_another_user_is_refused(short_path: Path) -> None:
    dest = short_path / "dest"
    (dest / ".~tmp~" / "huai").mkdir(parents=True)
    (dest / ".~tmp~" / "huai").chmod(0o777)
    if os.geteuid() != 0:
        (dest / ".~tmp~" / "huai").chmod(0o000)
        foreign_staging_is_refused(dest)
        return
    short_path.chmod(0o755)
    run_unprivileged(foreign_staging_is_refused, dest)


@pytest.mark.parametrize("mode", [0o775, 0o702, 0o1777])
@pytest.mark.parametrize("folder", ["", "huai"])
def test_a_staging_area_that_others_may_write_to_is_refused(
    root: Path, mode: int, folder: str
) -> None:
    (root.parent / "huai").mkdir(parents=True, exist_ok=True)
    (root.parent / folder).chmod(mode)
    with pytest.raises(NotOursError, match="other users can write to") as caught:
        Staging(root)
    assert "chmod go-w" in (caught.value.hint or "")
    assert caught.value.exit_code == ExitCode.DESTINATION


# ---------------------------------------------------------------- after an interrupted run


def test_complete_files_of_a_cut_run_become_ready(root: Path) -> None:
    complete, half = _file(b"deep/whole"), _file(b"deep/half", content=b"x" * 100)
    with Staging(root, boot=b"1") as staging:
        _arrive(staging, complete, run=3)
        _arrive(staging, half, b"x" * 60, run=3)
    with Staging(root, boot=b"1") as staging:
        staging.incoming.recover([complete, half])
        assert staging.ready(complete)
        assert not staging.ready(half)
        run = staging.incoming.begin([complete, half])
        assert (incoming(staging, run) / "deep/half").read_bytes() == b"x" * 60
        assert _accept(staging, half, run) is Arrival.MISSING  # the basis did not arrive


def test_what_a_killed_rsync_wrote_is_a_partial_of_its_file(root: Path) -> None:
    file = _file(b"d/big.iso", content=b"x" * 100)
    with Staging(root, boot=b"1") as staging:
        _arrive(staging, _file(b"d/.big.iso.Ab12Cd"), b"x" * 60)
    with Staging(root, boot=b"1") as staging:
        staging.incoming.recover([file])
        run = staging.incoming.begin([file])
        assert (incoming(staging, run) / "d/big.iso").read_bytes() == b"x" * 60


def test_a_name_that_only_looks_temporary_is_itself(root: Path) -> None:
    file = _file(b".config.backup")
    with Staging(root, boot=b"1") as staging:
        _arrive(staging, file)
    with Staging(root, boot=b"1") as staging:
        staging.incoming.recover([file])
        assert staging.ready(file)


def test_a_short_second_attempt_loses_nothing_of_the_first(root: Path) -> None:
    file = _file(b"big", content=b"n" * 100)
    with Staging(root, boot=b"1") as staging:
        _arrive(staging, file, b"n" * 80)
        staging.incoming.salvage(0, {file.path: file})
        run = staging.incoming.begin([file])
        _arrive(staging, _file(b".big.Ab12Cd"), b"N" * 10, run=run)
        staging.incoming.salvage(run, {file.path: file})
        run = staging.incoming.begin([file])
        assert (incoming(staging, run) / "big").read_bytes() == b"N" * 10 + b"n" * 70


def test_the_rest_of_the_present_file_completes_a_partial(root: Path) -> None:
    file = _file(b"sub/big", content=b"n" * 100)
    with Staging(root, boot=b"1") as staging:
        present = root.parent.parent / "sub/big"
        present.parent.mkdir()
        present.write_bytes(b"o" * 90)
        _arrive(staging, file, b"n" * 40)
        staging.incoming.salvage(0, {file.path: file})
        run = staging.incoming.begin([file])
        assert (incoming(staging, run) / "sub/big").read_bytes() == b"n" * 40 + b"o" * 50


def test_who_goes_on_at_the_end_gets_a_beginning_as_it_is(root: Path) -> None:
    file, other = _file(b"sub/big", content=b"n" * 100), _file(b"other")
    with Staging(root, boot=b"1") as staging:
        present = root.parent.parent / "sub/big"
        present.parent.mkdir()
        present.write_bytes(b"o" * 90)
        _arrive(staging, file, b"n" * 40)
        staging.incoming.salvage(0, {file.path: file})
        run, sizes = staging.incoming.resume([file, other])
        assert sizes == {file.path: 40}
        place = incoming(staging, run) / "sub/big"
        assert place.read_bytes() == b"n" * 40
        place.write_bytes(b"n" * 100)
        os.utime(place, ns=(file.mtime, file.mtime))
        assert _accept(staging, file, run) is Arrival.ARRIVED


def test_what_is_larger_than_its_file_is_not_kept(root: Path) -> None:
    file = _file(b"sub/small", content=b"n" * 10)
    with Staging(root, boot=b"1") as staging:
        _arrive(staging, file, b"n" * 11)
        staging.incoming.salvage(0, {file.path: file})
        run = staging.incoming.begin([file])
        assert not (incoming(staging, run) / "sub/small").exists()


def test_a_basis_is_looked_for_where_something_is_and_behind_no_symlink(
    root: Path, tmp_path: Path
) -> None:
    dest, outside = root.parent.parent, tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (dest / "old/deep").mkdir(parents=True)
    (dest / "old/link").symlink_to("deep")
    (dest / "out").symlink_to(outside)
    paths = [b"top", b"new/a/f", b"new/b/f", b"newer/f", b"old/new/a/f", b"old/n/f", b"old/link"]
    paths += [b"old/deep/f"]
    excluded = [b"out/f", b"out/deep/f", b"old/link/f", b"old/deep/f/below"]
    files = [_file(path, content=b"12") for path in paths + excluded]
    with Staging(root) as staging:
        assert staging.comparable(files, 1, 100) == []
        (dest / "old/deep/f").touch()
        assert staging.comparable(files, 1, 100) == files[: len(paths)]
        assert staging.comparable(files, 1, len(paths) - 1) == files[len(paths) - 1 : len(paths)]
        assert staging.comparable(files, 2, 100) == []


def test_a_tree_that_changed_its_shape_finds_nothing_in_its_way(root: Path) -> None:
    with Staging(root, boot=b"1") as staging:
        _arrive(staging, _file(b"x/y/z", content=b"x" * 9), b"x")
        staging.incoming.salvage(0, {})
        shallow = _file(b"x")
        _arrive(staging, shallow)
        assert _accept(staging, shallow) is Arrival.ARRIVED


def test_another_boot_is_trusted_only_after_a_second_look(root: Path) -> None:
    good, rotten = _file(b"good"), _file(b"rotten")
    unknown = _file(b"unknown")._replace(digest=None)
    with Staging(root, boot=b"1") as staging:
        for file in (good, rotten, unknown):
            _arrive(staging, file)
            assert _accept(staging, file, ended=False) is Arrival.ARRIVED
        ready(staging, rotten).write_bytes(bytes(len(CONTENT)))
        os.utime(ready(staging, rotten), ns=(T0, T0))
    with Staging(root, boot=b"2") as staging:
        assert staging.ready(good)
        assert not staging.ready(rotten)
        assert not staging.ready(unknown)
        staging.incoming.recover([rotten, unknown])
        run = staging.incoming.begin([rotten, unknown])
        assert (incoming(staging, run) / "unknown").read_bytes() == CONTENT  # a basis, no more
        assert _accept(staging, unknown, run) is Arrival.MISSING
    with Staging(root, boot=b"2") as staging:
        assert staging.ready(good)


def test_leftovers_of_another_boot_need_a_digest_to_count(root: Path) -> None:
    proved, unknown = _file(b"known"), _file(b"unknown")._replace(digest=None)
    with Staging(root, boot=b"1") as staging:
        _arrive(staging, proved)
        _arrive(staging, unknown)
    with Staging(root, boot=b"2") as staging:
        staging.incoming.recover([proved, unknown])
        assert staging.ready(proved)
        assert not staging.ready(unknown)


def test_a_boot_without_a_name_is_never_the_same(root: Path) -> None:
    file = _file()._replace(digest=None)
    with Staging(root, boot=b"") as staging:
        _arrive(staging, file)
        assert _accept(staging, file, ended=False) is Arrival.ARRIVED
    with Staging(root, boot=b"") as staging:
        assert not staging.ready(file)


# ---------------------------------------------------------------- clean-up


def test_prune_drops_what_is_no_longer_wanted(root: Path) -> None:
    old, new = _file(b"old"), _file(b"new")
    with Staging(root) as staging:
        for file in (old, new):
            _arrive(staging, file)
            _accept(staging, file, ended=False)
        staging.prune([new])
        assert not staging.ready(old)
        assert staging.ready(new)


def test_clear_leaves_a_usable_area_and_remove_leaves_nothing(root: Path) -> None:
    file = _file()
    with Staging(root) as staging:
        _arrive(staging, file)
        _accept(staging, file)
        staging.clear()
        assert not staging.ready(file)
        _arrive(staging, file)
        assert _accept(staging, file) is Arrival.ARRIVED
        staging.remove()
    assert not root.parent.exists()


@pytest.mark.parametrize("method", ["clear", "remove"])
def test_what_a_signal_cut_closes_nothing_twice(
    root: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def interrupted(_: int) -> list[bytes]:
        raise KeyboardInterrupt

    with Staging(root) as staging:
        monkeypatch.setattr(handles, "list_names", interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(staging, method)()


def test_remove_spares_what_is_not_ours(root: Path) -> None:
    with Staging(root) as staging:
        (root.parent / "theirs").write_bytes(b"")
        staging.remove()
    assert [path.name for path in root.parent.iterdir()] == ["theirs"]


def test_one_run_at_a_time(root: Path) -> None:
    with Staging(root) as staging, Staging(root) as other:
        with staging.exclusive() as lock:
            assert fcntl.fcntl(lock, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
            with pytest.raises(StagingBusyError) as caught, other.exclusive(patience=0.2):
                pass
            assert caught.value.exit_code == ExitCode.LOCKED
        with other.exclusive(patience=0.2):
            pass


@pytest.mark.parametrize(
    ("code", "kind", "hint"),
    [
        (errno.EIO, StorageError, "the disk fails"),
        (errno.ENOSPC, StorageError, "free some space"),
        (errno.EACCES, StagingError, "a directory that huai may write"),
    ],
)
def test_the_hint_for_an_area_that_cannot_be_made_follows_the_error(
    root: Path, code: int, kind: type[HuaiError], hint: str
) -> None:
    def work() -> tuple[str, str]:
        with pytest.raises(kind) as raised:
            Staging(root)
        return raised.value.message, raised.value.hint

    result = supervise(("mkdir",), work, at(1, code)).result
    assert isinstance(result, tuple)
    assert result[0] == f"{root}: {os.strerror(code)}"
    assert hint in result[1]
