"""The import contracts of pyproject.toml: each one fails when it is broken."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PACKAGES = ("schema", "server", "client")

BREAKING = {
    "The two sides meet in the schema only": (
        "client/huai_client/planted.py",
        "import huai_server",
    ),
    "No cycles between the modules of a package": (
        "schema/huai_schema/errors.py",
        "import huai_schema.paths",
    ),
    "One module of the client knows pygit2": (
        "server/huai_server/planted.py",
        "def f():\n    import pygit2",
    ),
    "Each program is started by one module on each side": (
        "client/huai_client/planted.py",
        "from subprocess import run",
    ),
    "The schema needs the engine and the standard library only": (
        "schema/huai_schema/program/locking.py",
        "import click",
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
    """The names of the contracts that do not hold in the tree at `top`."""
    # The program beside this interpreter, not whatever PATH finds.
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


@pytest.mark.parametrize("rule", BREAKING)
def test_a_broken_rule_is_seen(copy: Path, rule: str) -> None:
    place, line = BREAKING[rule]
    with (copy / place).open("a", encoding="utf-8") as module:
        module.write(f"\n{line}\n")
    assert rule in broken_rules(copy)


def test_the_format_may_not_use_what_acts(copy: Path) -> None:
    with (copy / "schema/huai_schema/codec/lines.py").open("a", encoding="utf-8") as module:
        module.write("\nimport huai_schema.program.locking\n")
    assert "The format reads no disk, no clock and no network" in broken_rules(copy)


def test_a_rule_for_a_module_that_is_gone_is_seen(copy: Path) -> None:
    (copy / "client/huai_client/plan/operations.py").unlink()
    assert "What plans a sync reads no disk, no clock and no network" in broken_rules(copy)
