"""A sync that ends itself by SIGKILL at one of the points where something may be half done.

A program of its own: `python -m tests.fault.cut_sync ROOT NAME POINT` prints how many points
it passed, if it got to its end.
"""

import os
import signal
import sys
from pathlib import Path

from huai_client import config
from huai_client.metadata.upstream import Upstream
from huai_client.mirror import Mirror
from huai_client.run_options import SyncOptions
from huai_client.state.lock import module_lock
from huai_client.state.paths import module_places
from huai_client.sync.result import Observer
from huai_client.sync.sync import Sync
from huai_client.transfer.listener import SilentProgress

CHANGING = {
    f"os.{call}"
    for call in ("rename", "mkdir", "chmod", "chown", "link", "symlink", "remove", "rmdir", "utime")
}
"""Audit events of the system calls that change what is on the disk (sys.audit)."""


class Cut:
    """Counts points, and ends this process at one of them."""

    def __init__(self, point: int) -> None:
        self._point = point
        self.passed = 0

    def reach(self) -> None:
        self.passed += 1
        if self.passed == self._point:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_audit(self, event: str, _: tuple[object, ...]) -> None:
        if event in CHANGING:
            self.reach()


def main(root: Path, name: str, point: int) -> None:
    """Sync once."""
    cut = Cut(point)
    observer = Observer(SilentProgress(), lambda _: cut.reach(), lambda *_: cut.reach())
    with module_lock(module_places(root, name), wait=0):
        module = config.load(root).module(name)
        mirror = Mirror.of(root, name, module)
        sync = Sync(mirror, SyncOptions(), Upstream.of(mirror))
        sys.addaudithook(cut.on_audit)
        result = sync.run(observer, lambda _: None)
    sys.stdout.write(f"{cut.passed} {int(result.exit_code)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
