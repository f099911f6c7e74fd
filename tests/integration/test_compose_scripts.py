"""The scripts of docker-compose.yml that talk to a server."""

import os
import subprocess
from pathlib import Path

from tests.support.rsyncd import rsync_daemon

HOOKS = Path(__file__).parents[2] / "hooks" / "compose"


def listed(folder: Path, url: str) -> int:
    environment = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.run(
        [HOOKS / "listed", url], env=environment, capture_output=True, timeout=60, check=False
    ).returncode


def test_a_daemon_is_asked_once_in_a_while_only(tmp_path: Path) -> None:
    served, stamps = tmp_path / "served", tmp_path / "stamps"
    served.mkdir()
    stamps.mkdir()
    with rsync_daemon({"m": served}) as url:
        assert listed(stamps, f"{url}/other/") != 0
        assert list(stamps.iterdir()) == []
        assert listed(stamps, f"{url}/m/") == 0
        assert listed(stamps, f"{url}/other/") == 0  # no server was asked
        (answered,) = stamps.iterdir()
        os.utime(answered, (0, 0))
        assert listed(stamps, f"{url}/other/") != 0
