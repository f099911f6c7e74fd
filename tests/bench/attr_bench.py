"""The cost of making and updating an attr tree, compared with rsync copying no content."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.bench.fallback_stand import KINDS, memory_file_system, upstream
from tests.bench.figures import Figure
from tests.bench.spending import spend
from tests.bench.stand import Stand

_KIB = 1024


def figures(stand: Stand) -> Iterator[Figure]:
    """Seconds, and bytes of memory an entry."""
    with (
        memory_file_system(stand.folder / "attr-only") as folder,
        upstream(stand, folder) as server,
    ):
        copy = folder / "copy"
        peer = "cp -a --attributes-only"
        theirs = []
        for _ in range(stand.rounds):
            shutil.rmtree(copy, ignore_errors=True)
            theirs.append(spend([*peer.split(), str(stand.tree), str(copy)]).wall)
        shutil.rmtree(copy, ignore_errors=True)
        for kind in KINDS[1:]:
            before = _unreclaimable()
            built = [_seconds(server.run("fallback", "build", kind, "--rebuild", "--json"))]
            if kind == "sparse":
                entry_bytes = (_unreclaimable() - before) / stand.entries
                yield Figure("attr tree, sparse: memory an entry", entry_bytes, "B")
            else:
                (image,) = (server.root / "modules" / kind).glob("attr-*.erofs")
                yield Figure(
                    "attr tree, erofs: image an entry", image.stat().st_size / stand.entries, "B"
                )
            built += [
                _seconds(server.run("fallback", "build", kind, "--rebuild", "--json"))
                for _ in range(stand.rounds - 1)
            ]
            yield Figure(f"attr tree, {kind}: build", median(built), "s", peer, median(theirs))
        updates = {kind: [] for kind in KINDS[1:]}  # type: dict[str, list[float]]
        changes = 0
        for _ in range(stand.rounds):
            changes = stand.churn().total
            for kind in KINDS[1:]:
                lines = server.run("commit", kind, "--json").splitlines()
                updates[kind].append(_seconds(lines[-1]))
        for kind in KINDS[1:]:
            title = f"attr tree, {kind}: update, {changes:,} entries changed"
            yield Figure(title, median(updates[kind]), "s")


def _seconds(line: str) -> float:
    return float(json.loads(line)["seconds"])


def _unreclaimable() -> int:
    """Bytes that the kernel holds and cannot give back, tmpfs among them."""
    time.sleep(0.2)  # what was freed is counted a little later
    held_bytes = 0
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name in ("Slab", "Shmem"):
            held_bytes += int(value.split()[0]) * _KIB
    return held_bytes
