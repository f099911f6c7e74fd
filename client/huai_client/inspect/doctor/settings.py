"""Checks of client.toml for errors that otherwise only a sync would find."""

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from huai_client.config.load import ClientConfig, load
from huai_client.config.mirror import Mirror
from huai_client.diff.active_filter import rules_of
from huai_client.inspect.config_check import check_config
from huai_client.inspect.doctor.finding import Finding, ok, warn
from huai_client.run.options import SyncOptions
from huai_program.humanize import counted


def settings(mirror: Mirror) -> Iterator[Finding]:
    """Check URLs, limits, filter and rsync's options."""
    root = mirror.root
    check_config(load(root), mirror.name, root)
    rules = rules_of(mirror, SyncOptions())
    yield ok(f"valid; {len(rules.rules):,} filter rules")


def config(file: tuple[Path, ClientConfig]) -> Iterator[Finding]:
    """Check that no two modules are mirrored into one tree."""
    path, content = file
    trees = sorted((os.path.realpath(each.dest), name) for name, each in content.modules.items())
    clear = True
    for (outer, one), (inner, other) in pairwise(trees):
        if Path(inner).is_relative_to(outer):
            clear = False
            message = f"{other} is mirrored to {inner}, which is in the tree of {one}"
            yield warn(message, f"give {other} another dest, or let {one} protect it")
    if clear:
        yield ok(f"{path}: {counted(len(trees), 'module')}")
