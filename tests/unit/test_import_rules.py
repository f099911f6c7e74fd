"""The import contracts of pyproject.toml: each one fails when it is broken."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PACKAGES = ("schema", "program", "server", "client")

BREAKING = {
    "The two sides meet in the format, and in what every program needs": (
        "client/huai_client/planted.py",
        "import huai_server",
    ),
    "No cycles between the modules of a package": (
        "schema/huai_schema/errors.py",
        "import huai_schema.paths",
    ),
    "What asks over HTTP knows libcurl": ("server/huai_server/store/replaced.py", "import pycurl"),
    "One module of the server knows obstore": (
        "server/huai_server/store/loose.py",
        "import obstore",
    ),
    "One module knows Dask": (
        "program/huai_program/engine/tasks.py",
        "import distributed",
    ),
    "One module knows MPI": (
        "program/huai_program/engine/tasks.py",
        "import mpi4py",
    ),
    "Programs are started by these modules only": (
        "client/huai_client/planted.py",
        "from subprocess import run",
    ),
    "What both programs share needs few libraries": (
        "program/huai_program/locking.py",
        "import tenacity",
    ),
    "The format reads no disk, no clock and no network": (
        "schema/huai_schema/codec/lines.py",
        "import os.path",
    ),
    "What plans a sync reads no disk, no clock and no network": (
        "client/huai_client/plan/operations.py",
        "import time",
    ),
}


def broken_rules(top: Path) -> list[str]:
    """Return the names of the contracts that are broken in the tree at `top`."""
    # The program next to this interpreter, not one that PATH finds.
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint, "--no-logo", "--no-cache"],
        cwd=top,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(top / p) for p in PACKAGES)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert any(line.startswith("Contracts:") for line in lines), done.stdout + done.stderr
    return [line.removesuffix(" BROKEN") for line in lines if line.endswith(" BROKEN")]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")
    for package in PACKAGES:
        shutil.copytree(TOP / package, tmp_path / package, ignore=ignored)
    (tmp_path / "tests").mkdir()
    shutil.copy(TOP / "tests" / "import_rules.py", tmp_path / "tests")
    shutil.copy(TOP / "pyproject.toml", tmp_path)
    return tmp_path


def plant(copy: Path, place: str, line: str) -> None:
    with (copy / place).open("a", encoding="utf-8") as module:
        module.write(f"\n{line}\n")


def test_each_broken_rule_is_seen(copy: Path) -> None:
    """Break all at once, since a run takes seconds."""
    for place, line in BREAKING.values():
        plant(copy, place, line)
    assert set(BREAKING) - set(broken_rules(copy)) == set()


def test_what_acts_and_what_is_gone_are_seen(copy: Path) -> None:
    plant(copy, "schema/huai_schema/codec/lines.py", "import huai_program.locking")
    (copy / "client/huai_client/plan/operations.py").unlink()
    assert {
        "The format reads no disk, no clock and no network",
        "What plans a sync reads no disk, no clock and no network",
    } <= set(broken_rules(copy))
