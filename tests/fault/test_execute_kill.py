"""An execution that was killed anywhere is finished by the next one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("user", [0, 65534])
def test_a_kill_before_every_system_call(short_path: Path, user: int) -> None:
    if os.geteuid() == 0:
        os.chown(short_path, user, user)
    done = subprocess.run(
        [sys.executable, "-m", "tests.fault.cut_execution", str(short_path), str(user)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Fewer would mean that the cuts missed the run: it has about thirty steps.
    assert int(done.stdout) > 50
