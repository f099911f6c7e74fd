"""Shards that are scanned on nodes, each of which has mounted the tree itself.

A node is a namespace of mounts and network.  The tree is an overlay there, with another device
number.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.committing import SECONDS, Upstream, server_command, server_environment
from tests.support.mounting import needs_mounts, with_own_mounts
from tests.support.sharded import cut_upstream, whole_id

SHARDS = ("pool/a", "pool/b", "small")
TRIES = 4


class Nodes:
    """Nodes that see one tree, state and folder for results."""

    def __init__(self, folder: Path) -> None:
        self.upstream = cut_upstream(folder)
        self.tree = self.upstream.tree.rename(folder / "lower")
        self.upstream.tree.mkdir()
        self.jobs = folder / "jobs"
        self._empty, self._disk = folder / "empty", folder / "disk"
        self._empty.mkdir()
        self._disk.mkdir()
        self._devices: dict[int, object] = {}

    def run(self, node: int, *commands: list[str]) -> list[dict[str, object]]:
        """Run commands of huai-server on a node; return their events, and the device before."""
        mount = f"mount -t overlay -o lowerdir={self.tree}:{self._empty} none"
        lines = [f"{mount} {self.upstream.tree}"]
        # A file system takes the lowest free number, which may be that of another node before.
        taken_numbers = "|".join(str(self._devices[each]) for each in self._devices if each != node)
        again = f"umount {self.upstream.tree}; mount -t tmpfs none {self._disk}; {lines[0]}"
        number = f"$(stat --format %d {self.upstream.tree})"
        lines += [f"case {number} in {taken_numbers or 'none'}) {again};; esac"] * TRIES
        lines += [f"stat --format '{{\"device\": %d}}' {self.upstream.tree}"]
        for command in commands:
            line = server_command(self.upstream.root, *command, "--json")
            lines.append(" ".join(f"'{word}'" for word in line))
        done = subprocess.run(
            with_own_mounts("\n".join(lines), "--net"),
            env=server_environment(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines()]
        self._devices[node] = events[0]["device"]
        return events

    def scan(self, node: int, *paths: str) -> list[dict[str, object]]:
        return self.run(node, *(["shard", "m", path, "--to", str(self.jobs)] for path in paths))

    def commit(self, node: int) -> dict[str, object]:
        events = self.run(node, ["commit", "m", "--from-shards", str(self.jobs)])
        return next(event for event in events if event.get("type") == "commit")


@pytest.fixture
def nodes(short_path: Path) -> Iterator[Nodes]:
    nodes = Nodes(short_path)
    yield nodes
    nodes.upstream.prove_sound()


@needs_mounts
def test_nodes_with_other_device_numbers_read_no_file_again(nodes: Nodes, tmp_path: Path) -> None:
    first = nodes.scan(1, *SHARDS[:2])
    second = nodes.scan(2, *SHARDS[2:])
    assert first[0]["device"] != second[0]["device"]
    assert nodes.commit(0)["problems"] == []
    alone = Upstream(tmp_path, nodes.tree)
    assert (nodes.upstream.entries_id, nodes.upstream.links()) == whole_id(alone, tmp_path)
    again = [*nodes.scan(2, *SHARDS[:2]), *nodes.scan(0, *SHARDS[2:])]
    assert [event["hashed_files"] for event in again if "type" in event] == [0, 0, 0]
    committed = nodes.commit(1)
    assert (committed["changed"], committed["hashed_files"]) == (False, 0)
