"""All checks, in the order of the report.

To add one: write a function that takes a `Mirror` and yields findings, and name it here.
"""

from pathlib import Path

from huai_client.config.load import ClientConfig
from huai_client.config.mirror import Mirror
from huai_client.inspect.doctor import destination, machine, state, upstreams
from huai_client.inspect.doctor.destination import feature
from huai_client.inspect.doctor.finding import Check

_TREE = ("destination",)

MACHINE: tuple[Check[Path], ...] = (
    Check("rsync", "the program that transfers", machine.rsync),
    Check("confinement", "the files that rsync may access", machine.confinement),
    Check("units", "the restrictions of systemd's services", machine.units),
    Check("root", "the folder of all state", machine.root),
    Check("root-space", "room for state", machine.room_findings, needs=("root",)),
)
"""The checks of the machine and the state root; each gets the state root."""

CONFIG: tuple[Check[tuple[Path, ClientConfig]], ...] = (
    Check("config", "client.toml", state.config),
)
"""The checks of the configuration; each gets the path of client.toml and its content."""

MODULE: tuple[Check[Mirror], ...] = (
    Check("settings", "the table of client.toml", state.settings),
    Check("lock", "one run at a time", state.lock),
    Check("state", "the recorded state of the tree", state.state),
    Check("history", "the result of the last run", state.history),
    Check("repository", "the local metadata", state.repository, needs=("state",)),
    Check("destination", "the tree's folder", destination.destination),
    Check(
        "set-id", "programs with other users' rights", destination.set_id, needs=("destination",)
    ),
    Check("space", "room for the tree", destination.space, needs=("destination",)),
    Check("tree", "synced content in the tree", state.tree, needs=("repository", "destination")),
    Check("hardlinks", "hardlinks", feature(destination.hardlinks), _TREE),
    Check("reflinks", "copies that share blocks", feature(destination.reflinks), _TREE),
    Check("noreplace", "renames that replace nothing", feature(destination.noreplace), _TREE),
    Check("times", "times to the nanosecond", feature(destination.times), _TREE),
    Check("modes", "permission bits", feature(destination.modes), _TREE),
    Check("names", "names of any bytes and case", feature(destination.any_names), _TREE),
    Check("metadata", "the upstream's metadata", upstreams.metadata),
    Check(
        "agreement", "one commit for each serial", upstreams.agreement, ("metadata", "repository")
    ),
    Check("clock", "the time of day", upstreams.clock, needs=("metadata",)),
    Check("content", "the upstream's content", upstreams.content, needs=("settings", "repository")),
)
"""The checks of a module."""
