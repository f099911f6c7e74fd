"""The rule of tests/conftest.py on skipped tests, tried on a small suite."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parents[1] / "conftest.py"

SKIPPED = {
    "by_a_mark": "@pytest.mark.skip(reason='later')\ndef test_it(): pass",
    "by_a_condition": "@pytest.mark.skipif(True, reason='not here')\ndef test_it(): pass",
    "from_inside": "def test_it(): pytest.skip('no root')",
    "from_a_fixture": "@pytest.fixture\ndef f(): pytest.skip('no')\ndef test_it(f): pass",
    "as_a_module": "pytest.skip('all of it', allow_module_level=True)",
    "for_an_import": "pytest.importorskip('no_such_module')",
}
SOUND = {
    "passing": "def test_it(): pass",
    "expected_failure": "@pytest.mark.xfail\ndef test_it(): assert False",
}


def run(folder: Path, tests: dict[str, str], ci: str) -> tuple[int, set[str]]:
    """Run a suite; return the exit code, and the names of the tests that failed."""
    shutil.copy(CONFTEST, folder / "conftest.py")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for name, body in tests.items():
        (folder / f"test_{name}.py").write_text(f"import pytest\n{body}\n", encoding="utf-8")
    options = ["-q", "-rfE", "--continue-on-collection-errors", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(folder)],
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    failed = re.findall(r"^(?:FAILED|ERROR) \S*test_(\w+)\.py", done.stdout, re.MULTILINE)
    return done.returncode, set(failed)


def test_every_way_of_skipping_fails_in_ci_and_nothing_else_does(tmp_path: Path) -> None:
    assert run(tmp_path, SKIPPED | SOUND, "true") == (1, set(SKIPPED))


def test_skipping_is_allowed_elsewhere(tmp_path: Path) -> None:
    assert run(tmp_path, SKIPPED | SOUND, "") == (0, set())
