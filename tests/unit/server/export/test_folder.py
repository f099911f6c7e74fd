"""The folder of an export: complete files, no symlinks, and no writing of equal content."""

import os
from pathlib import Path

import pytest

from huai_program.configuration import ConfigError
from huai_schema.errors import ExitCode, HuaiError
from huai_server.export.folder import ExportError, FolderError
from tests.support.exporting import Exporter
from tests.support.mirror_files import time_list, tree_state

LIST = "fullfiletimelist-m"


@pytest.fixture
def exporter(short_path: Path) -> Exporter:
    exporter = Exporter(short_path)
    exporter.upstream.write("d/file")
    exporter.upstream.commit()
    return exporter


def test_what_stands_there_already_is_not_touched(exporter: Exporter) -> None:
    assert exporter.outside().changed
    before = tree_state(exporter.out)
    assert not exporter.outside().changed
    assert tree_state(exporter.out) == before


@pytest.mark.parametrize("old", [b"", b"[Version]\n", b"[Version]\n2\n\n[Filez]\n", b"x" * 9000])
def test_other_content_is_replaced_as_a_whole(exporter: Exporter, old: bytes) -> None:
    exporter.outside()
    complete = exporter.read(LIST)
    place = exporter.out / LIST
    for content in (old, complete + old, complete[:-1]):
        if content == complete:
            continue
        place.write_bytes(content)
        assert exporter.outside().changed
        assert exporter.read(LIST) == complete
    assert place.stat().st_mode & 0o777 == 0o644
    assert not (exporter.out / ".~tmp~").exists()


@pytest.mark.parametrize("component", ["project", "project/trace"])
@pytest.mark.parametrize("inside", [True, False])
def test_no_symlink_leads_an_export_elsewhere(
    exporter: Exporter, short_path: Path, component: str, *, inside: bool
) -> None:
    elsewhere = short_path / "elsewhere"
    (elsewhere / "trace").mkdir(parents=True)
    top = exporter.upstream.tree if inside else exporter.out
    (top / component).parent.mkdir(exist_ok=True)
    (top / component).symlink_to(elsewhere)
    with pytest.raises(FolderError) as caught:
        exporter.export(None if inside else exporter.out)
    assert caught.value.exit_code == ExitCode.DESTINATION
    assert component.rpartition("/")[2] in caught.value.message
    assert [path.name for path in elsewhere.rglob("*")] == ["trace"]
    assert not (top / LIST).exists()


def test_a_folder_of_the_tree_that_is_a_symlink_is_refused(
    exporter: Exporter, short_path: Path
) -> None:
    elsewhere = short_path / "elsewhere"
    elsewhere.mkdir()
    (exporter.upstream.tree / "meta").symlink_to(elsewhere)
    exporter.configure(folder="meta")
    with pytest.raises(FolderError):
        exporter.export()
    with pytest.raises(FolderError):  # as with --to
        exporter.export(exporter.upstream.tree / "meta")
    assert list(elsewhere.iterdir()) == []


def test_a_folder_outside_that_leads_into_the_tree_is_in_the_tree(
    exporter: Exporter, short_path: Path
) -> None:
    (short_path / "way").symlink_to(exporter.upstream.tree)
    exporter.export(short_path / "way")
    rows = time_list((exporter.upstream.tree / LIST).read_bytes())
    assert "timestamp" in {row.path for row in rows}
    exporter.upstream.commit()
    assert not exporter.export(short_path / "way").changed


def test_a_file_that_is_a_symlink_is_replaced_and_not_followed(
    exporter: Exporter, short_path: Path
) -> None:
    (short_path / "victim").write_text("untouched")
    (exporter.upstream.tree / LIST).symlink_to(short_path / "victim")
    exporter.export()
    assert not (exporter.upstream.tree / LIST).is_symlink()
    assert (short_path / "victim").read_text() == "untouched"


def test_a_staging_area_that_is_a_symlink_is_refused(exporter: Exporter, short_path: Path) -> None:
    elsewhere = short_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "huai-export.lastupdate").write_text("not ours")
    (exporter.upstream.tree / ".~tmp~").symlink_to(elsewhere)
    with pytest.raises(HuaiError):
        exporter.export()
    assert [path.name for path in elsewhere.iterdir()] == ["huai-export.lastupdate"]


def test_what_others_stage_stays(exporter: Exporter) -> None:
    exporter.upstream.write(".~tmp~/of-rsync")
    exporter.upstream.write(".~tmp~/huai-export.lastupdate", "of a killed export")
    exporter.export()
    assert os.listdir(exporter.upstream.tree / ".~tmp~") == ["of-rsync"]


def test_a_directory_in_the_place_of_a_file_is_told(exporter: Exporter) -> None:
    (exporter.out / "lastupdate").mkdir()
    with pytest.raises(ExportError) as caught:
        exporter.outside()
    assert str(exporter.out / "lastupdate") in caught.value.message
    assert not (exporter.out / ".~tmp~").exists()


@pytest.mark.parametrize("folder", ["..", "a/../b", ".~tmp~", "x/./y", "a//b"])
def test_a_folder_that_names_no_directory_of_the_tree_is_refused(
    exporter: Exporter, folder: str
) -> None:
    exporter.configure(folder=folder)
    with pytest.raises(ConfigError):
        exporter.export()


@pytest.mark.parametrize("name", ["huai-export.lastupdate", "huai-export.fullfiletimelist-m"])
def test_what_an_uploader_planted_for_an_export_is_not_opened(
    exporter: Exporter, short_path: Path, name: str
) -> None:
    victim = short_path / "victim"
    victim.write_bytes(b"kept")
    staging = exporter.upstream.tree / ".~tmp~"
    staging.mkdir()
    os.mkfifo(staging / name)
    (staging / f"{name}.").hardlink_to(victim)
    exporter.export()
    assert victim.read_bytes() == b"kept"
    assert not staging.exists()


def test_a_staging_folder_that_others_may_write_to_is_refused(exporter: Exporter) -> None:
    staging = exporter.upstream.tree / ".~tmp~"
    staging.mkdir()
    staging.chmod(0o777)
    with pytest.raises(FolderError) as caught:
        exporter.export()
    assert caught.value.exit_code == ExitCode.DESTINATION
    assert "0777" in caught.value.message
