"""A sync in a child that dies by SIGKILL at one of the points where something may be half done."""

from typing import NamedTuple

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
from tests.support.upstream import Downstream

POINTS = (*CHANGING, "mark")
"""Before each change of a file, and whenever the sync tells how far it is."""


_VARYING = 10
"""Points by which one run may have fewer than another: how often it tells how far it is."""


class CutSync(NamedTuple):
    """What became of the sync."""

    killed: bool
    passed: int
    """Points, the one where it died included."""


def cut(down: Downstream, point: int) -> CutSync:
    """Sync once, up to a point; 0: to its end, which has to be a good one.

    If there is an `on_change`, what it is to be told is written down.
    """
    root, name = down.root, down.name
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
        deciding = Cut(point)
        done = supervise(POINTS, work, deciding)
    assert done.killed or done.result == 0, done.result
    return CutSync(done.killed, deciding.passed)


def cut_at(down: Downstream, point: int, total: int) -> None:
    """Let a sync die at a point, of as many as a whole one passed."""
    assert cut(down, point).killed or point > total - _VARYING
