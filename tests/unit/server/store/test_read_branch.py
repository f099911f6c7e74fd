from pathlib import Path

import pytest

from huai_server.store.repository import read_branch

ID = b"0123456789abcdef0123456789abcdef01234567"
OTHER = ID[::-1]


def write(repository: Path, *, loose: bytes | None = None, packed: bytes | None = None) -> None:
    (repository / "refs/heads").mkdir(parents=True)
    if loose is not None:
        (repository / "refs/heads/main").write_bytes(loose)
    if packed is not None:
        (repository / "packed-refs").write_bytes(packed)


def test_the_loose_ref_wins(tmp_path: Path) -> None:
    write(tmp_path, loose=ID + b"\n", packed=OTHER + b" refs/heads/main\n")
    assert read_branch(tmp_path) == ID.decode()


def test_packed_refs_stand_in(tmp_path: Path) -> None:
    packed = b"# pack-refs with: peeled fully-peeled sorted\n"
    packed += ID + b" refs/heads/main-old\n" + OTHER + b" refs/heads/main\n"
    write(tmp_path, packed=packed)
    assert read_branch(tmp_path) == OTHER.decode()


@pytest.mark.parametrize(
    "loose", [b"", b"ref: refs/heads/other\n", ID[:-1], ID + b"0\n", ID.upper()]
)
def test_what_is_no_plain_id_is_unknown(tmp_path: Path, loose: bytes) -> None:
    write(tmp_path, loose=loose)
    assert read_branch(tmp_path) is None


def test_no_ref_no_repository_and_no_file(tmp_path: Path) -> None:
    assert read_branch(tmp_path / "missing") is None
    (tmp_path / "refs/heads/main").mkdir(parents=True)
    assert read_branch(tmp_path) is None
