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


@pytest.fixture(scope="module")
def wheel() -> Path:
    done = subprocess.run([TOP / "dev", "wheel"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return TOP / done.stdout.strip()


def test_it_runs_on_every_python_and_not_too_new_systems(wheel: Path) -> None:
    assert wheel.name.startswith("huai-")
    assert "-cp311-abi3-manylinux_2_" in wheel.name


def test_it_names_each_crate_of_its_engine(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        (place,) = (name for name in opened.namelist() if "/sboms/" in name and name[-1] != "/")
        assert place.endswith(".dist-info/sboms/huai-native.cdx.json")
        sbom = json.loads(opened.read(place))
    components = {each["bom-ref"] for each in [*sbom["components"], sbom["metadata"]["component"]]}
    assert components == {crate.key for crate in read_crates()}


def test_it_holds_each_file_of_the_packages(wheel: Path) -> None:
    """Modules and other files: templates, words, tables, types; but no sources of the engine."""
    held_in_git = subprocess.run(
        ["git", "ls-files", "-z", *_PACKAGES], cwd=TOP, capture_output=True, check=True
    )
    files = [Path(os.fsdecode(each)) for each in held_in_git.stdout.split(b"\0") if each]
    expected_files = {
        each.relative_to(_root(each)).as_posix() for each in files if not _compiled(each)
    }
    assert len({Path(each).suffix for each in expected_files}) > 5
    with zipfile.ZipFile(wheel) as opened:
        assert expected_files - set(opened.namelist()) == set()


def _root(path: Path) -> str:
    (root,) = (each for each in _PACKAGES if path.is_relative_to(each))
    return root


def _compiled(path: Path) -> bool:
    return path.suffix in {".c", ".h", ".rs"} or path.parent == Path("native/python")


def test_its_programs_start_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path)
    code = (
        "import huai_native._native as engine; print(engine.__file__, flush=True)\n"
        "from huai_client.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    engine, version = done.stdout.splitlines()
    assert Path(engine).parent == tmp_path / "huai_native"
    assert version.startswith("huai-client, version ")
