"""The scan of a tree: its lines, attributes, order and identities."""

import os
import subprocess
from pathlib import Path

import pytest

from huai_schema.errors import ExitCode
from huai_schema.paths import ROOT
from huai_server.scan.types import (
    OUT_OF_RANGE,
    TIME,
    RootMissingError,
    ScanOptions,
)
from tests.support.scanned import listings, scan

PLAIN = ScanOptions(owners=False)


def file(path: Path, *, size: int = 0, mode: int = 0o644, mtime: int = 0) -> Path:
    path.write_bytes(b"x" * size)
    path.chmod(mode)
    os.utime(path, ns=(0, mtime))
    return path


def test_lines_omit_what_is_usual(tmp_path: Path) -> None:
    file(tmp_path / "usual", size=7, mtime=1_500_000_000)
    file(tmp_path / "setuid", mode=0o4755)
    file(tmp_path / "zero", mode=0)
    file(tmp_path / "group", mode=0o40)
    (tmp_path / "link").symlink_to("../a\tb")
    os.utime(tmp_path / "link", ns=(0, -1_500_000_000), follow_symlinks=False)
    assert listings(tmp_path, PLAIN)[0].leaves == (
        b"group\t0\t0\tm40\n"
        b"link\t>../a\\x09b\t-2.5\n"
        b"setuid\t0\t0\tm4755\n"
        b"usual\t7\t1.5\n"
        b"zero\t0\t0\tm0\n"
    )


def test_owners_by_name_or_number(tmp_path: Path) -> None:
    path = file(tmp_path / "f")
    if os.geteuid() == 0:
        os.chown(path, 54_321, 54_322)
        file(tmp_path / "root")
    (leaf, *other_leaves) = scan(tmp_path).leaves.values()
    names = subprocess.check_output(["stat", "-c", "%U %u %G %g", path], text=True).split()
    user, uid, group, gid = (name.encode() for name in names)
    assert leaf.owner == (b"#" + uid if user == b"UNKNOWN" else user)
    assert leaf.group == (b"#" + gid if group == b"UNKNOWN" else group)
    assert [(other.owner, other.group) for other in other_leaves] in ([], [(b"root", b"root")])


def test_times_that_do_not_fit(tmp_path: Path) -> None:
    far = 1 << 64
    for name, mtime in (("early", -far), ("fine", 0), ("late", far)):
        os.utime(file(tmp_path / name), ns=(0, mtime))
        assert mtime == 0 or abs((tmp_path / name).stat().st_mtime_ns) > 1 << 33, "clamped"
    tmp_path.chmod(0o755)
    os.utime(tmp_path, ns=(0, far))
    representable = {
        name
        for name in (b"early", b"fine", b"late")
        if abs((tmp_path / name.decode()).stat().st_mtime_ns) < 1 << 63
    }
    scanned = scan(tmp_path, PLAIN)
    assert set(scanned.leaves) == representable
    unknown = {b"early", b"fine", b"late"} - representable
    assert scanned.problems == {ROOT: TIME, **dict.fromkeys(unknown, OUT_OF_RANGE)}
    assert unknown, "the file system of temporary files knows no time beyond 2262"
    assert listings(tmp_path, PLAIN)[0].attributes == b"9223372036.854775807"


@pytest.mark.parametrize("name", ["missing", "file"])
def test_without_a_root(tmp_path: Path, name: str) -> None:
    file(tmp_path / "file")
    with pytest.raises(RootMissingError, match=name) as caught:
        scan(tmp_path / name)
    assert caught.value.exit_code == ExitCode.EMPTY_ROOT
    assert caught.value.hint
