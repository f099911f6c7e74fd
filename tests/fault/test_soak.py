"""Kills at random while the upstream changes without end: nothing half is seen, all converges.

HUAI_TEST_SOAK: for how many seconds; HUAI_TEST_SEED: another course of things.
"""

import os
import random
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from huai_client.config import load as client_config
from huai_server.config import load as server_config
from huai_server.config.tables import Module
from tests.fault.soaking import Busy, Hand, Report, content_service, metadata_service, reading
from tests.support.upstream import Downstream, Upstream, rsync_differences

SOAK_SECONDS = int(os.environ.get("HUAI_TEST_SOAK", "4"))
SEED = int(os.environ.get("HUAI_TEST_SEED", "1"))
ROUNDS_BETWEEN_CHECKS = 8
FEWEST_KILLS = 3
"""However slow the machine is."""
WAIT = 2
"""Seconds that deletions wait, where they do."""
EXPECTED = {0, 10, 11, 12, 20, 23, 24, 30, 43, 48, 51, 130, 143, -signal.SIGKILL}
"""All that a run may say whose upstream moves, whose rsync dies, or whose place is locked; 51 if it
dies as it states its version."""
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "trash": {"trash": "20s", "streams": 4},
    "duplicates": {"duplicates": "hardlink"},
    "waiting": {"delete_after": f"{WAIT}s", "trash": "20s"},
}
NAME = "soak"


def converge(down: Downstream, up: Upstream) -> None:
    """The upstream rests, and one more run makes all as it should be."""
    assert up.commit().problems == ()
    if client_config.load(down.root).module(NAME).delete_after != "0":
        down.run("sync", NAME)
        time.sleep(WAIT + 1)
    done = down.run("sync", NAME)
    assert done.code == 0, done.err
    assert rsync_differences(up, down) == ""
    verified = down.verify("--content")
    assert verified.code == 0, verified
    assert down.state.attempted == ()


@pytest.mark.slow
@pytest.mark.timeout(2 * SOAK_SECONDS + 300)
@pytest.mark.parametrize("variant", VARIANTS)
def test_kills_at_random_on_a_busy_upstream(tmp_path: Path, variant: str) -> None:
    chance = random.Random(f"{SEED} {variant}")
    report = Report()
    trees, root, client = (tmp_path / name for name in ("trees", "server", "client"))
    for folder in (trees / NAME, root, client, tmp_path / "dest"):
        folder.mkdir(parents=True)
    metadata, content = metadata_service(root), content_service(tmp_path, trees)
    with ExitStack() as stack:
        for service in (metadata, content):
            stack.callback(service.kill)
            service.up()
        url = f"rsync://127.0.0.1:{content.port}/trees/{NAME}"
        module = Module(path=str(trees / NAME), content_urls=(url,))
        server_config.add_module(root, NAME, module)
        busy = Busy(Upstream(NAME, trees / NAME, root), chance)
        settings = {"max_delete": "100%", "bwlimit": 4000, "timeout": 20, **VARIANTS[variant]}
        down = Downstream(NAME, tmp_path / "dest", client)
        address = f"http://127.0.0.1:{metadata.port}"
        client_config.add_module(
            client, NAME, client_config.Module(url=address, dest=str(down.dest), **settings)
        )
        hand = Hand(metadata, content, chance, report)
        stack.enter_context(reading(down, report))
        soak(busy, down, hand, report)
    assert (report.mixed, report.lost) == ([], [])
    assert report.files_read
    assert set(report.exits) <= EXPECTED, report.exits


def soak(busy: Busy, down: Downstream, hand: Hand, report: Report) -> None:
    """Change, commit, sync and disturb until the time is over; look whether all converges."""
    until = time.monotonic() + SOAK_SECONDS
    while time.monotonic() < until or report.kills.total() < FEWEST_KILLS:
        busy.change()
        hand.commit(busy.up)
        report.syncs += 1
        report.exits[hand.disturb(down.spawn("sync", "-q", "--wait", "20", down.name))] += 1
        if report.syncs % ROUNDS_BETWEEN_CHECKS == 0:
            converge(down, busy.up)
    converge(down, busy.up)
