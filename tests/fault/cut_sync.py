"""A sync that ends itself by SIGKILL at one of the points where something may be half done.

A program of its own: `python -m tests.fault.cut_sync ROOT NAME POINT` prints how many points
it passed, if it got to its end.
"""

import os
import signal
import sys
from pathlib import Path

from huai_client import config
from huai_client.hooks.changes import Changes
from huai_client.metadata.upstream import Upstream
from huai_client.mirror import Mirror
from huai_client.plan.prepared import Prepared
from huai_client.run_options import SyncOptions
from huai_client.state.lock import module_lock
from huai_client.state.paths import module_places
from huai_client.sync.result import Observer
from huai_client.sync.sync import Sync
from huai_client.transfer.listener import SilentProgress
from huai_schema.paths import RelPath
from tests.support.system_calls import CHANGING, Cut, mark, supervise

POINTS = (*CHANGING, "mark")
"""Before each change of a file, and whenever the sync tells how far it is."""


def main(root: Path, name: str, point: int) -> None:
    """Sync once; if there is an `on_change`, write down what it is to be told."""
    with module_lock(module_places(root, name), wait=0):
        module = config.load(root).module(name)
        mirror = Mirror.of(root, name, module)
        changes = Changes(mirror.paths.changes, listed=module.hooks.on_change is not None)

        def planned(prepared: Prepared) -> None:
            changes.planned(prepared)
            mark()

        def step(kind: str, path: RelPath) -> None:
            changes.step(kind, path)
            mark()

        def work() -> int:
            changes.begin()
            return int(sync.run(observer, lambda _: None).exit_code)

        observer = Observer(SilentProgress(), planned, step)
        sync = Sync(mirror, SyncOptions(), Upstream.of(mirror))
        cut = Cut(point)
        done = supervise(POINTS, work, cut)
    if done.killed:
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdout.write(f"{cut.passed} {done.result}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
