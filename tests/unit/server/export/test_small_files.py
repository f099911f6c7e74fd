"""Stamps, trace files, tunasync.json and B3SUMS, read as their users do."""

import os
from pathlib import Path

import pytest

from huai_native._native import Blake3
from huai_server.config.tables import ModuleExport
from huai_server.export import export as export_module
from huai_server.export.dialects import NAMES
from tests.support.exporting import ALL, HOST, Exporter
from tests.support.mirror_files import b3sums, jobs, probed, trace


@pytest.fixture
def exporter(short_path: Path) -> Exporter:
    return Exporter(short_path, upstream="rsync://up.example/m", sums=("iso", "nowhere"))


def committed(exporter: Exporter) -> int:
    """Commit and export the tree; returns the time of the commit."""
    exporter.upstream.write("iso/a.iso", "content")
    exporter.upstream.commit()
    exporter.outside()
    return exporter.upstream.head.time


def test_server_toml_knows_all_dialects() -> None:
    assert set(ALL) == set(NAMES)
    values = str(ModuleExport.__annotations__["files"])
    assert all(repr(name) in values for name in NAMES)


def test_stamps_are_the_time_of_the_commit(exporter: Exporter) -> None:
    time = committed(exporter)
    for name in ("lastupdate", "lastsync", "timestamp"):
        assert exporter.read(name) == b"%d\n" % time
        assert probed(exporter.read(name)) == time


def test_a_heartbeat_renews_what_says_when_somebody_looked(
    exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = committed(exporter)
    exporter.configure(heartbeat=3600)
    later = time + 10_000
    for seconds in (later, later - later % 3600 + 3599):
        monkeypatch.setattr(export_module, "clock", lambda now=seconds: now)
        exporter.outside()
        beat = later - later % 3600
        assert probed(exporter.read("lastupdate")) == time
        assert probed(exporter.read("lastsync")) == beat
        assert probed(exporter.read("timestamp")) == beat
        assert trace(exporter.read(f"project/trace/{HOST}")).time.timestamp() == beat
    monkeypatch.setattr(export_module, "clock", lambda: time - 10_000)  # a clock that went back
    exporter.outside()
    assert probed(exporter.read("lastsync")) == time


def test_the_trace_file_has_what_is_known(exporter: Exporter) -> None:
    for path in (
        *("main/binary-amd64/Packages.xz", "main/binary-arm64/Packages.gz"),
        *("main/source/Sources.xz", "main/binary-none/Release", "main/i18n/Packages.x"),
    ):
        exporter.upstream.write(f"dists/stable/{path}")
    time = committed(exporter)
    file = trace(exporter.read(f"project/trace/{HOST}"))
    assert file.time.timestamp() == time
    assert file.fields["Running on host"] == HOST
    assert file.fields["Upstream-mirror"] == "rsync://up.example/m"
    assert file.fields["Architectures"] == "amd64 arm64 source"
    assert file.fields["Creator"].startswith("huai-server ")


def test_the_list_of_traces_is_ordered_by_time_and_ends_with_the_own_one(
    exporter: Exporter,
) -> None:
    for age, name in enumerate(("b.example", "a.example", "_hierarchy", "c.example", HOST)):
        exporter.upstream.write(f"project/trace/{name}", mtime=1_600_000_000 - age)
    exporter.upstream.write("project/trace/d/not-a-trace", mtime=1_600_000_000)
    committed(exporter)
    traces = exporter.read("project/trace/_traces").decode().splitlines()
    assert traces == ["c.example", "a.example", "b.example", HOST]


def test_tunasync_gets_a_job_that_succeeded(exporter: Exporter) -> None:
    exporter.upstream.configure(digest="off")
    time = committed(exporter)
    (job,) = jobs(exporter.read("tunasync.json"))
    assert (job["name"], job["status"], job["is_master"]) == ("m", "success", True)
    assert job["last_update_ts"] == time
    assert job["upstream"] == "rsync://up.example/m"
    assert job["size"] == "7"


@pytest.mark.parametrize(
    ("size", "expected_size"),
    [(0, "7"), (993, "1.00K"), (1_500_000 - 7, "1.50M"), (2 * 10**12, "2.00T")],
)
def test_sizes_are_in_units_of_a_thousand(
    exporter: Exporter, size: int, expected_size: str
) -> None:
    exporter.upstream.configure(digest="off")
    os.truncate(exporter.upstream.write("sparse"), size)
    committed(exporter)
    (job,) = jobs(exporter.read("tunasync.json"))
    assert job["size"] == expected_size


def test_sums_are_those_of_the_content(exporter: Exporter) -> None:
    odd = {b"back\\slash": "1", b"new\nline": "2", b"two  spaces": "3", b"*star": "4"}
    unnamed = {b"\xff": "5", b"re\rturn": "6"}
    tree = os.fsencode(exporter.upstream.tree)
    exporter.upstream.write("iso/sub/below", "not in this directory")
    (exporter.upstream.tree / "iso/link").symlink_to("a.iso")
    for name, content in {**odd, **unnamed}.items():
        Path(os.fsdecode(tree + b"/iso/" + name)).write_text(content)
    committed(exporter)
    expected = {b"a.iso": "content", **odd}
    assert b3sums(exporter.read("iso/B3SUMS")) == {
        name: Blake3(content.encode()).digest().hex() for name, content in expected.items()
    }
    assert not (exporter.out / "nowhere").exists()


def test_files_without_a_digest_are_in_no_sums(exporter: Exporter) -> None:
    exporter.upstream.configure(digest="off")
    committed(exporter)
    assert exporter.read("iso/B3SUMS") == b""
