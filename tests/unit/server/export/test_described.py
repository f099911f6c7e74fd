"""The described commit of an export, and the end of exports of a tree into itself."""

import os
from pathlib import Path

import pytest

from tests.support.exporting import ALL, HOST, Exporter


@pytest.fixture
def exporter(short_path: Path) -> Exporter:
    exporter = Exporter(short_path, sums=("d", "d/e"))
    for path in ("a", "d/b", "d/e/c", "project/README", "project/trace/up.example"):
        exporter.upstream.write(path, path)
    return exporter


def settle(exporter: Exporter) -> None:
    """Commit, export, commit, as an administrator's script does."""
    exporter.upstream.commit()
    exporter.export()
    exporter.upstream.commit()


@pytest.mark.parametrize(
    ("dialects", "folder"),
    [
        *(((dialect,), "d") for dialect in ALL),
        *((ALL, at) for at in ("", "meta", "meta/deep/down")),
    ],
)
def test_each_dialect_comes_to_an_end_wherever_it_is_written(
    exporter: Exporter, dialects: tuple[str, ...], folder: str
) -> None:
    exporter.configure(files=dialects, folder=folder, sums=("",))
    settle(exporter)
    assert not exporter.export().changed
    assert not exporter.upstream.commit().changed
    exporter.upstream.write("d/more")
    settle(exporter)
    assert not exporter.export().changed
    assert not exporter.upstream.commit().changed


def test_a_change_of_the_mirror_is_described(exporter: Exporter) -> None:
    settle(exporter)
    exporter.upstream.write("d/new")
    exporter.upstream.commit()
    result = exporter.export()
    assert result.serial == 3
    assert {bytes(file.path) for file in result.files if file.changed} >= {
        *(b"fullfilelist", b"fullfiletimelist-m", b"ls-lR.gz", b"d/B3SUMS")
    }
    exporter.upstream.commit()
    assert not exporter.export().changed


def test_files_of_an_export_that_vanished_come_back_as_they_were(exporter: Exporter) -> None:
    settle(exporter)
    tree = exporter.upstream.tree
    before = {name: (tree / name).read_bytes() for name in ("lastupdate", "ls-lR.gz")}
    for name in before:
        (tree / name).unlink()
    (tree / f"project/trace/{HOST}").write_text("edited")
    assert exporter.upstream.commit().changed
    assert exporter.export().serial == 1
    assert {name: (tree / name).read_bytes() for name in before} == before


@pytest.mark.parametrize(
    "change",
    ["chmod", "directory chmod", "remove directory", "other trace", "replaced by a directory"],
)
def test_what_exports_do_not_do_is_news(exporter: Exporter, change: str) -> None:
    settle(exporter)
    tree = exporter.upstream.tree
    if change == "chmod":
        (tree / "a").chmod(0o600)
    elif change == "directory chmod":
        (tree / "project/trace").chmod(0o700)
    elif change == "remove directory":
        (tree / "d/e/c").unlink()
        (tree / "d/e/B3SUMS").unlink()
        (tree / "d/e").rmdir()
    elif change == "other trace":
        exporter.upstream.write("project/trace/other")
    else:
        (tree / "a").unlink()
        (tree / "a").mkdir()
    exporter.upstream.commit()
    assert exporter.export().serial == 3


def test_a_heartbeat_is_no_news(exporter: Exporter) -> None:
    settle(exporter)
    for beat in range(3):
        stamp = exporter.upstream.tree / "timestamp"
        stamp.write_text(f"{beat}\n")
        os.utime(stamp, (beat, beat))
        assert exporter.upstream.commit().changed
    assert exporter.export().serial == 1


def test_a_commit_that_only_says_other_urls_is_no_news(exporter: Exporter) -> None:
    settle(exporter)
    exporter.upstream.configure(content_urls=("rsync://other.example/m",))
    assert exporter.upstream.commit().changed
    assert not exporter.export().changed
