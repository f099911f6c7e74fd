import fcntl
import os
import socket
from pathlib import Path

import pytest
from blake3 import blake3

from huai_client.transfer.staging import Arrival, Staging, StagingBusyError, StagingError, key_of
from huai_client.tree import NotOursError
from huai_schema.entries import File
from huai_schema.errors import ExitCode
from huai_schema.paths import rel_path
from tests.support.staged import incoming, ready
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


def _arrive(staging: Staging, file: File, content: bytes = CONTENT, stream: int = 0) -> Path:
    place = incoming(staging, stream) / os.fsdecode(file.path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    os.utime(place, ns=(file.mtime, file.mtime))
    return place


def test_what_fits_becomes_ready_and_stays_so(root: Path) -> None:
    file = _file()
    with Staging(root) as staging:
        assert not staging.ready(file)
        assert staging.accept(file, 0) is Arrival.MISSING
        place = _arrive(staging, file)
        assert staging.accept(file, 0) is Arrival.ARRIVED
        assert not place.exists()
    with Staging(root) as staging:
        assert staging.ready(file)
        assert ready(staging, file).read_bytes() == CONTENT
        handle, name = staging.locate(file)
        assert os.stat(name, dir_fd=handle).st_size == len(CONTENT)
    assert root.stat().st_mode & 0o7777 == 0o700


def test_other_metadata_is_another_key() -> None:
    file = _file()
    others = [
        file._replace(path=rel_path(b"sub/b")),
        file._replace(size=1),
        file._replace(mtime=T0 + 1),
        file._replace(digest=None),
        file._replace(digest=bytes(32)),
    ]
    assert len({key_of(file), *map(key_of, others)}) == 6
    assert key_of(file) == key_of(file._replace(mode=0o600, owner=b"x"))


def test_size_time_and_digest_have_to_fit(root: Path) -> None:
    with Staging(root) as staging:
        wrong = [
            (_file(b"size"), CONTENT + b"x", T0),
            (_file(b"nanosecond"), CONTENT, T0 + 1),
            (_file(b"second"), CONTENT, T0 + 10**9),
            (_file(b"digest"), CONTENT.upper(), T0),
        ]
        for file, content, mtime in wrong:
            place = _arrive(staging, file._replace(mtime=mtime), content)
            assert staging.accept(file, 0) is Arrival.MISMATCH, file.path
            assert place.exists()
            assert not staging.ready(file)


def test_whole_seconds_of_an_old_peer_suffice(root: Path) -> None:
    for mtime in (T0, -1_500_000_000):
        file = _file(mtime=mtime)
        with Staging(root) as staging:
            _arrive(staging, file._replace(mtime=mtime // 10**9 * 10**9))
            assert staging.accept(file, 0) is Arrival.ARRIVED


def test_without_a_digest_size_and_time_decide(root: Path) -> None:
    file = _file()._replace(digest=None)
    with Staging(root) as staging:
        _arrive(staging, file, CONTENT.upper())
        assert staging.accept(file, 0) is Arrival.ARRIVED


def test_the_time_of_a_partial_file_proves_nothing_after_a_cut(root: Path) -> None:
    file = _file(mtime=5)._replace(digest=None)
    with Staging(root) as staging:
        _arrive(staging, file)
        assert staging.accept(file, 0, cut=True) is Arrival.MISMATCH
        assert staging.accept(file, 0) is Arrival.ARRIVED


def test_only_regular_files_are_accepted(root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(CONTENT)
    os.utime(secret, ns=(T0, T0))
    file = _file(b"a")
    with Staging(root) as staging:
        place = incoming(staging, 0) / "a"
        place.symlink_to(secret)
        assert staging.accept(file, 0) is Arrival.MISMATCH
        place.unlink()
        os.mkfifo(place)
        assert staging.accept(file, 0) is Arrival.MISMATCH
        place.unlink()
        with socket.socket(socket.AF_UNIX) as node:
            node.bind(str(place))
        assert staging.accept(file, 0) is Arrival.MISMATCH
        place.unlink()
        place.mkdir()
        assert staging.accept(file, 0) is Arrival.MISMATCH
        place.rmdir()
        place.write_bytes(CONTENT)  # a file where a directory belongs
        assert staging.accept(_file(b"a/b"), 0) is Arrival.MISMATCH
    assert secret.read_bytes() == CONTENT


def test_a_symlink_to_a_directory_is_not_walked(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_bytes(CONTENT)
    os.utime(outside / "a", ns=(T0, T0))
    with Staging(root) as staging:
        (incoming(staging, 0) / "sub").symlink_to(outside)
        assert staging.accept(_file(), 0) is Arrival.MISMATCH
        staging.salvage_partials(0, {})
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
        staging.recover([file])
        _arrive(staging, file)
        assert staging.accept(file, 0) is Arrival.ARRIVED
        staging.salvage_partials(0, {})
    assert [path.name for path in outside.rglob("*")] == ["0"]


def test_dest_has_to_be_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("missing", "file", "link"):
        with pytest.raises(StagingError):
            Staging(tmp_path / name / ".~tmp~" / "huai")


def foreign_staging_is_refused(folder: Path) -> None:
    """Run as nobody: `folder` is ours, the staging area in it is root's."""
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
    run_unprivileged(__name__, "foreign_staging_is_refused", dest)


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


# ---------------------------------------------------------------- what an interrupted run leaves


def test_complete_files_of_a_cut_run_become_ready(root: Path) -> None:
    whole, half = _file(b"deep/whole"), _file(b"deep/half", content=b"x" * 100)
    with Staging(root, boot=b"1") as staging:
        _arrive(staging, whole, stream=3)
        _arrive(staging, half, b"x" * 60, stream=3)
    with Staging(root, boot=b"1") as staging:
        staging.recover([whole, half])
        assert staging.ready(whole)
        assert not staging.ready(half)
        staging.prepare(0, [whole, half])
        assert (incoming(staging, 0) / "deep/half").read_bytes() == b"x" * 60
        assert staging.accept(half, 0) is Arrival.MISSING  # the basis is no arrival


def test_what_a_killed_rsync_wrote_is_a_partial_of_its_file(root: Path) -> None:
    file = _file(b"d/big.iso", content=b"x" * 100)
    with Staging(root, boot=b"1") as staging:
        _arrive(staging, _file(b"d/.big.iso.Ab12Cd"), b"x" * 60)
    with Staging(root, boot=b"1") as staging:
        staging.recover([file])
        staging.prepare(1, [file])
        assert (incoming(staging, 1) / "d/big.iso").read_bytes() == b"x" * 60


def test_a_name_that_only_looks_temporary_is_itself(root: Path) -> None:
    file = _file(b".config.backup")
    with Staging(root, boot=b"1") as staging:
        _arrive(staging, file)
    with Staging(root, boot=b"1") as staging:
        staging.recover([file])
        assert staging.ready(file)


def test_a_short_second_attempt_loses_nothing_of_the_first(root: Path) -> None:
    file = _file(b"big", content=b"n" * 100)
    with Staging(root, boot=b"1") as staging:
        _arrive(staging, file, b"n" * 80)
        staging.salvage_partials(0, {file.path: file})
        staging.prepare(0, [file])
        _arrive(staging, _file(b".big.Ab12Cd"), b"N" * 10)
        staging.salvage_partials(0, {file.path: file})
        staging.prepare(0, [file])
        assert (incoming(staging, 0) / "big").read_bytes() == b"N" * 10 + b"n" * 70


def test_the_rest_of_the_present_file_completes_a_partial(root: Path) -> None:
    file = _file(b"sub/big", content=b"n" * 100)
    with Staging(root, boot=b"1") as staging:
        present = root.parent.parent / "sub/big"
        present.parent.mkdir()
        present.write_bytes(b"o" * 90)
        _arrive(staging, file, b"n" * 40)
        staging.salvage_partials(0, {file.path: file})
        staging.prepare(0, [file])
        assert (incoming(staging, 0) / "sub/big").read_bytes() == b"n" * 40 + b"o" * 50


def test_what_is_larger_than_its_file_is_not_kept(root: Path) -> None:
    file = _file(b"sub/small", content=b"n" * 10)
    with Staging(root, boot=b"1") as staging:
        _arrive(staging, file, b"n" * 11)
        staging.salvage_partials(0, {file.path: file})
        assert not any(path.is_file() for path in (root / "partial").iterdir())
        staging.prepare(0, [file])
        assert not (incoming(staging, 0) / "sub/small").exists()


def test_no_basis_is_looked_for_behind_a_symlink(root: Path, tmp_path: Path) -> None:
    dest, outside = root.parent.parent, tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    with Staging(root) as staging:
        (dest / "d").mkdir()
        (dest / "l").symlink_to(outside)
        (dest / "f").touch()
        assert staging.may_compare([_file(b"top"), _file(b"d/f"), _file(b"new/deep/f")])
        for path in (b"l/f", b"l/deep/f", b"f/below"):
            assert not staging.may_compare([_file(b"top"), _file(path)])


def test_a_tree_that_changed_its_shape_finds_nothing_in_its_way(root: Path) -> None:
    with Staging(root, boot=b"1") as staging:
        _arrive(staging, _file(b"x/y/z", content=b"x" * 9), b"x")
        staging.salvage_partials(0, {})
        shallow = _file(b"x")
        _arrive(staging, shallow)
        assert staging.accept(shallow, 0) is Arrival.ARRIVED


def test_another_boot_is_trusted_only_after_a_second_look(root: Path) -> None:
    good, rotten = _file(b"good"), _file(b"rotten")
    unknown = _file(b"unknown")._replace(digest=None)
    with Staging(root, boot=b"1") as staging:
        for file in (good, rotten, unknown):
            _arrive(staging, file)
            assert staging.accept(file, 0) is Arrival.ARRIVED
        ready(staging, rotten).write_bytes(bytes(len(CONTENT)))
        os.utime(ready(staging, rotten), ns=(T0, T0))
    with Staging(root, boot=b"2") as staging:
        assert staging.ready(good)
        assert not staging.ready(rotten)
        assert not staging.ready(unknown)
        staging.recover([rotten, unknown])
        staging.prepare(0, [rotten, unknown])
        assert (incoming(staging, 0) / "unknown").read_bytes() == CONTENT  # a basis, no more
        assert staging.accept(unknown, 0) is Arrival.MISSING
    with Staging(root, boot=b"2") as staging:
        assert staging.ready(good)


def test_leftovers_of_another_boot_need_a_digest_to_count(root: Path) -> None:
    known, unknown = _file(b"known"), _file(b"unknown")._replace(digest=None)
    with Staging(root, boot=b"1") as staging:
        _arrive(staging, known)
        _arrive(staging, unknown)
    with Staging(root, boot=b"2") as staging:
        staging.recover([known, unknown])
        assert staging.ready(known)
        assert not staging.ready(unknown)


def test_a_boot_without_a_name_is_never_the_same(root: Path) -> None:
    file = _file()._replace(digest=None)
    with Staging(root, boot=b"") as staging:
        _arrive(staging, file)
        assert staging.accept(file, 0) is Arrival.ARRIVED
    with Staging(root, boot=b"") as staging:
        assert not staging.ready(file)


# ---------------------------------------------------------------- tidying up


def test_prune_drops_what_is_no_longer_wanted(root: Path) -> None:
    old, new = _file(b"old"), _file(b"new")
    with Staging(root) as staging:
        for file in (old, new):
            _arrive(staging, file)
            staging.accept(file, 0)
        staging.prune({key_of(new)})
        assert not staging.ready(old)
        assert staging.ready(new)


def test_clear_leaves_a_usable_area_and_remove_leaves_nothing(root: Path) -> None:
    file = _file()
    with Staging(root) as staging:
        _arrive(staging, file)
        staging.accept(file, 0)
        staging.clear()
        assert not staging.ready(file)
        _arrive(staging, file)
        assert staging.accept(file, 0) is Arrival.ARRIVED
        staging.remove()
    assert not root.parent.exists()


def test_remove_spares_what_is_not_ours(root: Path) -> None:
    with Staging(root) as staging:
        (root.parent / "theirs").write_bytes(b"")
        staging.remove()
    assert [path.name for path in root.parent.iterdir()] == ["theirs"]


def test_any_depth_can_be_cleared(short_path: Path) -> None:
    root = short_path / ".~tmp~" / "huai"
    with Staging(root) as staging:
        handle = staging.open_incoming(0)
        for _ in range(50):  # 10,000 bytes of path
            os.mkdir(b"d" * 200, dir_fd=handle)
            below = os.open(b"d" * 200, os.O_RDONLY | os.O_DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = below
        os.close(handle)
        staging.salvage_partials(0, {})
        assert list((root / "incoming").iterdir()) == []


def test_one_run_at_a_time(root: Path) -> None:
    with Staging(root) as staging, Staging(root) as other:
        with staging.exclusive() as lock:
            assert fcntl.fcntl(lock, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
            with pytest.raises(StagingBusyError) as caught, other.exclusive(patience=0.2):
                pass
            assert caught.value.exit_code == ExitCode.LOCKED
        with other.exclusive(patience=0.2):
            pass
