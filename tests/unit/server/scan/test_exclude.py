"""Paths that a scan leaves out."""

import os
from pathlib import Path

import pytest

from huai_schema.errors import ExitCode
from huai_server.commit.remarks import RESERVED, TEMPORARY
from huai_server.scan import exclude
from huai_server.scan.types import ScanOptions
from tests.support.scanned import scan
from tests.support.unprivileged import as_nobody


def listed(root: Path, *patterns: bytes) -> set[bytes]:
    return {bytes(path) for path in scan(root, ScanOptions(exclude=patterns)).entries if path}


def touch(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def left_out(root: Path, *patterns: bytes) -> dict[str, int]:
    return scan(root, ScanOptions(exclude=patterns)).remarks


@pytest.mark.parametrize("name", [".~tmp~", ".~TMP~", ".~Tmp~"])
def test_the_name_of_staging_is_reserved_at_every_level(tmp_path: Path, name: str) -> None:
    """A downstream stages there, so it could not publish an upstream's path of that name."""
    touch(tmp_path, f"{name}/f", f"d/{name}/f", f"file/{name}", "x.~tmp~")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / name).symlink_to("/")
    os.mkfifo(tmp_path / "d" / "fifo")
    assert listed(tmp_path) == {b"d", b"file", b"link", b"x.~tmp~"}
    assert left_out(tmp_path) == {RESERVED: 4}
    assert left_out(tmp_path, os.fsencode(name)) == {}, "who excludes it, knows of it"


def test_a_reserved_name_is_told_where_nothing_can_be_looked_at(short_path: Path) -> None:
    """It is recognized by its name, so it need not be readable."""
    short_path.chmod(0o755)
    touch(short_path, "d/.~tmp~", "e/.~tmp~/f")
    for folder in ("d", "e"):
        (short_path / folder).chmod(0o444)
    scan(short_path)  # loads what the child may not load
    scanned = as_nobody(lambda: scan(short_path))
    assert (scanned.problems, scanned.remarks) == ({}, {RESERVED: 2})


TEMPORARY_NAMES = [
    ".f.Ab3xY9", ".a.b.c.ABCDEF", ".x.12345a", ".\n.a1b2c3", ".config.backup", ".log.202401",
    ".checksums.sha256", ".htaccess.BACKUP",
]  # fmt: skip


def with_modes(root: Path, names: list[str], *modes: int) -> set[bytes]:
    """Make a file of each name and mode, in a folder for the mode; returns their paths."""
    paths = {f"{mode:o}/{name}": mode for mode in modes for name in names}
    touch(root, *paths)
    for path, mode in paths.items():
        (root / path).chmod(mode)
        os.utime(root / path, (0, 0))  # as of an rsync that was killed long ago
    return {path.encode() for path in paths}


def test_what_rsync_has_not_finished_is_left_out_and_told(tmp_path: Path) -> None:
    paths = with_modes(tmp_path, TEMPORARY_NAMES, 0o600, 0o700, 0o200, 0o400)
    assert listed(tmp_path) == {b"600", b"700", b"200", b"400"}
    assert left_out(tmp_path) == {TEMPORARY: len(paths)}


def test_a_name_alone_makes_no_temporary_file(tmp_path: Path) -> None:
    """Such names, as of lists of checksums, were left out once, and deleted downstream."""
    paths = with_modes(tmp_path, TEMPORARY_NAMES, 0o644, 0o640, 0o604, 0o755)
    assert listed(tmp_path) == {*paths, b"644", b"640", b"604", b"755"}
    assert left_out(tmp_path) == {}


def test_a_pattern_that_matches_nothing_is_refused(tmp_path: Path) -> None:
    for pattern in (b"/", b"", b"a\0b"):
        with pytest.raises(exclude.BadPatternError) as caught:
            scan(tmp_path, ScanOptions(exclude=(pattern,)))
        assert caught.value.exit_code == ExitCode.CONFIG
