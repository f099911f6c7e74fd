import sqlite3
from contextlib import closing
from pathlib import Path

from huai_client.state.seen import SeenDigests, SeenFile
from huai_schema.entries import File
from huai_schema.paths import rel_path

DIGEST = bytes(range(32))


def _file(path: bytes) -> File:
    return File(rel_path(path), 1, 2)


def _seen_file(path: bytes, digest: bytes = DIGEST) -> SeenFile:
    return SeenFile(rel_path(path), 1, 2, digest)


def test_a_moved_directory_replaces_what_was_below_its_new_path(tmp_path: Path) -> None:
    with SeenDigests(tmp_path / "seen") as seen_digests:
        seen_digests.replace(
            (), [_seen_file(b"old/a"), _seen_file(b"older"), _seen_file(b"new/a", bytes(32))]
        )
        seen_digests.replace((), [_seen_file(b"new/b", bytes(32)), _seen_file(b"newer", bytes(32))])
        seen_digests.move(rel_path(b"old"), rel_path(b"new"))
        paths = (b"old/a", b"older", b"new/a", b"new/b", b"newer")
        digests = [seen_digests.find(_file(path)) for path in paths]
        assert digests == [None, DIGEST, DIGEST, None, bytes(32)]


def test_a_copy_replaces_an_older_digest_unless_the_source_has_another_time(
    tmp_path: Path,
) -> None:
    source, target = rel_path(b"source"), rel_path(b"target")
    with SeenDigests(tmp_path / "seen") as seen_digests:
        seen_digests.replace((), [_seen_file(source), _seen_file(target, bytes(32))])
        seen_digests.copy([(source, 3, target)])
        assert seen_digests.find(_file(target)) == bytes(32)
        seen_digests.copy([(source, 2, target)])
        assert seen_digests.find(_file(target)) == DIGEST


def test_nothing_is_left_if_a_digest_cannot_be_removed(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    with SeenDigests(path) as seen_digests:
        seen_digests.replace((), [_seen_file(b"file"), _seen_file(b"other")])
        with closing(sqlite3.connect(path)) as db:
            db.execute(
                "CREATE TRIGGER full BEFORE DELETE ON seen BEGIN SELECT RAISE(ABORT, ''); END"
            )
        seen_digests.remove([rel_path(b"file")])
        assert not path.exists()
        seen_digests.replace((), [_seen_file(b"file")])
    with SeenDigests(path) as seen_digests:
        assert seen_digests.is_empty
