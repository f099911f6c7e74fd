"""`./dev wheel`: what it makes runs without a compiler and says what it is made of."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from native.sbom import read_crates

TOP = Path(__file__).parents[2]
_PACKAGES = ("native/python", "schema", "server", "client")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_a_wheel_is_complete_and_runs(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """One test: each worker that has one of several would build the wheel."""
    done = subprocess.run([TOP / "dev", "wheel"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wheel = TOP / done.stdout.strip()
    with subtests.test("it runs on every Python, and not only on new systems"):
        assert wheel.name.startswith("huai-")
        assert "-cp311-abi3-manylinux_2_" in wheel.name
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        opened.extractall(tmp_path)
    with subtests.test("it names each crate of its engine"):
        (place,) = (name for name in names if "/sboms/" in name and name[-1] != "/")
        assert place.endswith(".dist-info/sboms/huai-native.cdx.json")
        sbom = json.loads((tmp_path / place).read_bytes())
        components = [*sbom["components"], sbom["metadata"]["component"]]
        assert {each["bom-ref"] for each in components} == {crate.key for crate in read_crates()}
    with subtests.test("it holds each file of the packages"):
        assert packaged_files() - {*names} == set()
    with subtests.test("its programs start without the checkout"):
        assert_starts(tmp_path)


def packaged_files() -> set[str]:
    """Return modules and other files: templates, words, tables, types; no sources of the engine."""
    held_in_git = subprocess.run(
        ["git", "ls-files", "-z", *_PACKAGES], cwd=TOP, capture_output=True, check=True
    )
    files = [Path(os.fsdecode(each)) for each in held_in_git.stdout.split(b"\0") if each]
    expected_files = {
        each.relative_to(_root(each)).as_posix() for each in files if not _compiled(each)
    }
    assert len({Path(each).suffix for each in expected_files}) > 5
    return expected_files


def _root(path: Path) -> str:
    (root,) = (each for each in _PACKAGES if path.is_relative_to(each))
    return root


def _compiled(path: Path) -> bool:
    return path.suffix in {".c", ".h", ".rs"} or path.parent == Path("native/python")


def assert_starts(folder: Path) -> None:
    code = (
        "import huai_native._native as engine; print(engine.__file__, flush=True)\n"
        "from huai_client.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    engine, version = done.stdout.splitlines()
    assert Path(engine).parent == folder / "huai_native"
    assert version.startswith("huai-client, version ")
